/**
 * The diagnostics of Cairn and their texts. Each text is written once, as a function and a type of the same name, so
 * that the compiler of TypeScript and `compile()` say the same words. What only one of the two can see is one of them.
 *
 * A message type stands where the wrong value stands; the editor then prints the text as the expected type.
 */

/**
 * Every code, with the one-line title of its page in `docs/diagnostics/`.
 *
 * @category codes
 * @since 0.1.0
 */
export const diagnosticCodes = {
  CRN101: "more than one external effect in a step",
  CRN102: "performs an operation that is not declared",
  CRN103: "needs a service that its effects do not classify",
  CRN104: "a name is taken, or is not a usable literal",
  CRN105: "a value does not encode to JSON",
  CRN106: "a transaction step on a store without transactions",
  CRN107: "something that a step relies on is missing",
  CRN108: "a step that reads and performs",
  CRN109: "declares an operation and performs none, or performs twice",
  CRN110: "an option is out of its range",
  CRN111: "a step that no run reaches",
} as const

/**
 * A diagnostic's code: `CRN101` and so on.
 *
 * @category codes
 * @since 0.1.0
 */
export type DiagnosticCode = keyof typeof diagnosticCodes

/**
 * One finding of `compile()`.
 *
 * *Shape.* `message` begins with the code. `step` is the step's name, or null where the workflow itself is meant.
 *
 * @category models
 * @since 0.1.0
 */
export interface Diagnostic {
  readonly code: DiagnosticCode
  readonly step: string | null
  readonly message: string
}

// ---- CRN101 ----------------------------------------------------------------------------------------------------

export type manyEffects<
  Step extends string,
  Count extends number,
  Names extends string,
> = `CRN101: step '${Step}' has ${Count} external effects (${Names}); one step each, or Operation.oneOf if only one of them is performed`
export const manyEffects = <Step extends string, Count extends number, Names extends string>(
  step: Step,
  count: Count,
  names: Names,
): manyEffects<Step, Count, Names> =>
  `CRN101: step '${step}' has ${count} external effects (${names}); one step each, or Operation.oneOf if only one of them is performed`

export type severalPerformed<Step extends string> =
  `CRN101: step '${Step}' performs several external effects; one step each, or Operation.oneOf if only one of them is performed`
export const severalPerformed = <Step extends string>(step: Step): severalPerformed<Step> =>
  `CRN101: step '${step}' performs several external effects; one step each, or Operation.oneOf if only one of them is performed`

export type effectsNotLiteral<Step extends string> =
  `CRN101: effects of step '${Step}' must be written out as a literal list (an array variable hides how many operations it holds); use 'as const'`
export const effectsNotLiteral = <Step extends string>(step: Step): effectsNotLiteral<Step> =>
  `CRN101: effects of step '${step}' must be written out as a literal list (an array variable hides how many operations it holds); use 'as const'`

export type choiceOfOperations<Step extends string> =
  `CRN101: step '${Step}' declares a choice of operations; declare it as Operation.oneOf({ .. })`
export const choiceOfOperations = <Step extends string>(step: Step): choiceOfOperations<Step> =>
  `CRN101: step '${step}' declares a choice of operations; declare it as Operation.oneOf({ .. })`

export type nestedChoice<Case extends string> =
  `CRN101: case '${Case}' of Operation.oneOf must be an operation made by Operation.make; list the operations of the inner choice instead`
export const nestedChoice = <Case extends string>(name: Case): nestedChoice<Case> =>
  `CRN101: case '${name}' of Operation.oneOf must be an operation made by Operation.make; list the operations of the inner choice instead`

export type compactionPerforms =
  "CRN101: compact of the window may only read; leave operations and transactions to steps of the workflow"
export const compactionPerforms: compactionPerforms =
  "CRN101: compact of the window may only read; leave operations and transactions to steps of the workflow"

// ---- CRN102 ----------------------------------------------------------------------------------------------------

export type undeclaredOperation<
  Step extends string,
  Operation extends string,
> = `CRN102: step '${Step}' performs '${Operation}' without declaring it in effects; add the operation to the step's effects`
export const undeclaredOperation = <Step extends string, Operation extends string>(
  step: Step,
  operation: Operation,
): undeclaredOperation<Step, Operation> =>
  `CRN102: step '${step}' performs '${operation}' without declaring it in effects; add the operation to the step's effects`

export type undeclaredData<
  Step extends string,
  Data extends string,
> = `CRN102: step '${Step}' reads data '${Data}' without declaring it in effects; add the data version to the step's effects`
export const undeclaredData = <Step extends string, Data extends string>(
  step: Step,
  data: Data,
): undeclaredData<Step, Data> =>
  `CRN102: step '${step}' reads data '${data}' without declaring it in effects; add the data version to the step's effects`

// ---- CRN103 ----------------------------------------------------------------------------------------------------

export type undeclaredService<Step extends string> =
  `CRN103: step '${Step}' uses a service that its effects do not declare; add Effects.read(..) or Effects.local(..)`
export const undeclaredService = <Step extends string>(step: Step): undeclaredService<Step> =>
  `CRN103: step '${step}' uses a service that its effects do not declare; add Effects.read(..) or Effects.local(..)`

export type untypedRequirements<Step extends string> =
  `CRN103: step '${Step}' has 'any' as its requirements; nothing can be checked, give the effect a type`
export const untypedRequirements = <Step extends string>(step: Step): untypedRequirements<Step> =>
  `CRN103: step '${step}' has 'any' as its requirements; nothing can be checked, give the effect a type`

export type unknownEffect<Step extends string> =
  `CRN103: step '${Step}' lists something in effects that is no effect; use an operation, Effects.read(..), Effects.local(..) or Effects.transaction`
export const unknownEffect = <Step extends string>(step: Step): unknownEffect<Step> =>
  `CRN103: step '${step}' lists something in effects that is no effect; use an operation, Effects.read(..), Effects.local(..) or Effects.transaction`

// ---- CRN104 ----------------------------------------------------------------------------------------------------

export type nameTaken<Step extends string> =
  `CRN104: step name '${Step}' is already taken; every step of a scope has a name of its own`
export const nameTaken = <Step extends string>(step: Step): nameTaken<Step> =>
  `CRN104: step name '${step}' is already taken; every step of a scope has a name of its own`

export type nameNotLiteral = "CRN104: a step's name must be a literal; build workflows of computed steps with Plan.make"
export const nameNotLiteral: nameNotLiteral =
  "CRN104: a step's name must be a literal; build workflows of computed steps with Plan.make"

export type fragmentNameTaken<Step extends string> =
  `CRN104: the fragment's step '${Step}' is already taken; rename it in one of the two`
export const fragmentNameTaken = <Step extends string>(step: Step): fragmentNameTaken<Step> =>
  `CRN104: the fragment's step '${step}' is already taken; rename it in one of the two`

export const operationNameTaken = (operation: string): string =>
  `CRN104: operation name '${operation}' stands for two different operations; their handlers could not be told apart, rename one`

export const dataNameTaken = (step: string, data: string): string =>
  `CRN104: data name '${data}' stands for two data versions of step '${step}'; what it has read could not be told apart, rename one`

export const workflowGivenTwice = (workflow: string, version: number): string =>
  `CRN104: workflow '${workflow}' version ${version} is given twice; its runs could not be told apart, leave one out or give it another name or version`

export const nameUnusable = (what: string, name: string, reason: string): string =>
  `CRN104: ${what} ${JSON.stringify(name)} cannot be used: ${reason}`

// ---- CRN105 ----------------------------------------------------------------------------------------------------

/** `Place` reads like `output of step 'extract'` or `payload of operation 'payments.charge'`. */
export type notJson<Place extends string> =
  `CRN105: ${Place} does not encode to JSON; use a schema whose encoded side is JSON, e.g. Schema.Date for Schema.DateFromSelf`
export const notJson = <Place extends string>(place: Place): notJson<Place> =>
  `CRN105: ${place} does not encode to JSON; use a schema whose encoded side is JSON, e.g. Schema.Date for Schema.DateFromSelf`

export type itemsNotJson<Step extends string> =
  `CRN105: items of forEach '${Step}' are not JSON as they are; add item: <schema of one item>, whose encoded side is JSON`

export const notASchema = (place: string): string =>
  `CRN105: ${place} has no schema; give an effect/Schema or any Standard Schema (Zod, Valibot, ArkType)`

// ---- CRN106 ----------------------------------------------------------------------------------------------------

export const dataNeedsTransactions = (step: string, data: string, store: string): string =>
  `CRN106: step '${step}' reads data '${data}' from the store's database, and the ${store} store has no transactions; provide SqliteStore or PostgresStore`

export type needsTransactions =
  "CRN106: a transaction step needs a store with transactions; provide SqliteStore or PostgresStore"
export const needsTransactions = <Step extends string, Store extends string>(step: Step, store: Store) =>
  `CRN106: step '${step}' is a transaction step, and the ${store} store has no transactions; provide SqliteStore or PostgresStore` as const

// ---- CRN107 ----------------------------------------------------------------------------------------------------

export type optionalNotMarked<Step extends string> =
  `CRN107: step '${Step}' may skip its operation; say so with optional: true`
export const optionalNotMarked = <Step extends string>(step: Step): optionalNotMarked<Step> =>
  `CRN107: step '${step}' may skip its operation; say so with optional: true`

export type fragmentNeedsResults<Name extends string> =
  `CRN107: the fragment needs results that are not there yet: '${Name}'; add the step before .use, with the output it asks for`
export const fragmentNeedsResults = <Name extends string>(name: Name): fragmentNeedsResults<Name> =>
  `CRN107: the fragment needs results that are not there yet: '${name}'; add the step before .use, with the output it asks for`

export type fragmentNeedsInput = "CRN107: the fragment needs another input than this workflow has"
export const fragmentNeedsInput: fragmentNeedsInput = "CRN107: the fragment needs another input than this workflow has"

export type fragmentNeedsFailure =
  "CRN107: the fragment may fail with what this workflow does not declare; add it to failure: of Workflow.make"

export type fragmentNeedsWindow =
  "CRN107: the fragment needs another window than this workflow has; give window: to Workflow.make, with the schema it asks for"

export const emptyChoice = "CRN107: Operation.oneOf lists no operation; name at least one case"

export const notAFragment =
  "CRN107: .use was given something that is no fragment; make one with Workflow.fragment, whose function returns the flow"

export const notAStep =
  "CRN107: the steps of Plan.make must be a list of what Plan.step and Plan.perform give; something else stands there"

export const outputNotSelected =
  "CRN107: the output of the workflow has no function; give one from the context to the value, as the second argument"

export const unreadable = (reason: string): string =>
  `CRN107: a part of the workflow could not be read: ${reason}; build it with Workflow.make and plain values`

export type caseMissing<
  Step extends string,
  Case extends string,
> = `CRN107: branch '${Step}' has no case '${Case}'; add a function for it, (flow) => flow where nothing is to be done`
export type caseUnknown<
  Step extends string,
  Case extends string,
> = `CRN107: branch '${Step}' never takes case '${Case}'; correct its name, or leave it out`
export type caseNotLiteral<Step extends string> =
  `CRN107: branch '${Step}' may choose any string; give literals, e.g. cents > 100 ? "large" : "small", or 'as const'`
export type endDiffers<Step extends string> =
  `CRN107: '${Step}' ends the workflow with a value that does not fit this output; give both the same type`
export type endWithoutOutput<Step extends string> =
  `CRN107: '${Step}' ends the workflow with a value, and the workflow has no output; add .output(schema, select) before .compile()`

/** `which` reads like `case 'large'`, `arm 'mail'` or `the body`. */
export const notAFlow = (step: string, which: string): string =>
  `CRN107: ${which} of '${step}' gives no flow; give a function that returns the flow it is given, with its steps added`

export const noBodies = (step: string, what: "case" | "arm"): string =>
  `CRN107: '${step}' has no ${what}; give an object with a function for each`

export type noFailureDeclared<Step extends string> =
  `CRN107: '${Step}' fails the run, and the workflow declares no failure; add failure: <schema> to Workflow.make`
export const noFailureDeclared = <Step extends string>(step: Step): noFailureDeclared<Step> =>
  `CRN107: '${step}' fails the run, and the workflow declares no failure; add failure: <schema> to Workflow.make`

/** What is wrong with a child, as its parent says it. */
export const inChild = (workflow: string, message: string): string =>
  message.replace(/^(CRN\d{3}: )/, `$1in child workflow '${workflow.replaceAll("$", "$$$$")}': `)

export const missingPart = (step: string, part: string): string => `CRN107: step '${step}' has no ${part}`

// ---- CRN108 ----------------------------------------------------------------------------------------------------

export type readsAndPerforms<
  Step extends string,
  Operation extends string,
> = `CRN108: step '${Step}' reads and performs '${Operation}'; after a crash the read would run again and disagree with what was sent; read in the step before`
export const readsAndPerforms = <Step extends string, Operation extends string>(
  step: Step,
  operation: Operation,
): readsAndPerforms<Step, Operation> =>
  `CRN108: step '${step}' reads and performs '${operation}'; after a crash the read would run again and disagree with what was sent; read in the step before`

export const paidInTransaction = (step: string): string =>
  `CRN108: transaction step '${step}' makes a paid call, for which the store's connection would have to wait; make it in the step before`

// ---- CRN109 ----------------------------------------------------------------------------------------------------

export const performedNone = (step: string, operation: string): string =>
  `CRN109: step '${step}' declares '${operation}' and ended without performing it; perform it, or use .perform with optional: true`
export const performedTwice = (step: string, operation: string): string =>
  `CRN109: step '${step}' performed a second operation ('${operation}'); it was not sent; one step each, or a loop with one operation a turn`
export const performedOutside = (operation: string): string =>
  `CRN109: '${operation}' was performed outside a step, where no crash could be recovered; perform it in a step that declares it`

export const dataReadOutside = (data: string): string =>
  `CRN109: data '${data}' was read outside a step, where nothing notes in which state it was; read it in a step that declares it`

// ---- CRN110 ----------------------------------------------------------------------------------------------------

export const optionOutOfRange = (of: string, option: string, expected: string, got: string): string =>
  `CRN110: ${option} of ${of} must be ${expected}; got ${got}`

// ---- CRN111 ----------------------------------------------------------------------------------------------------

export type unreachable<After extends string> =
  `CRN111: nothing after '${After}' is reached, for it ends every run that comes so far; move it before, or into a branch`
export const unreachable = <After extends string>(after: After): unreachable<After> =>
  `CRN111: nothing after '${after}' is reached, for it ends every run that comes so far; move it before, or into a branch`
