/**
 * `compile`: a definition becomes a plan, or everything that is wrong with it at once, as values.
 *
 * The rules are those of the types, for callers without types; each check names the code that it writes.
 */
import * as Either from "effect/Either"
import type { Definition } from "../dsl/Definition.js"
import { unreadable, type Diagnostic } from "../model/DiagnosticCode.js"
import { CompileError } from "../model/Errors.js"
import { thrownText } from "../model/internal/thrownText.js"
import type { Plan } from "../model/Plan.js"
import { checkEffects } from "./internal/checks/effects.js"
import { checkJson } from "./internal/checks/json.js"
import { checkBudget } from "./internal/checks/money.js"
import { checkLimits } from "./internal/checks/limits.js"
import { checkNames } from "./internal/checks/names.js"
import { checkOptions } from "./internal/checks/options.js"
import { checkParts } from "./internal/checks/parts.js"
import { checkReach } from "./internal/checks/reach.js"
import { checkWindow } from "./internal/checks/window.js"
import { lower } from "./internal/lower.js"
import { nameText } from "./internal/shown.js"

const checks: ReadonlyArray<(definition: Definition) => ReadonlyArray<Diagnostic>> = [
  checkNames,
  checkParts,
  checkEffects,
  checkJson,
  checkOptions,
  checkLimits,
  checkBudget,
  checkReach,
  checkWindow,
]

/**
 * Compiles a definition.
 *
 * *Errors.* `CompileError` with every diagnostic found, in the order of the checks and of the steps. It never throws,
 * whatever a caller without types has put together.
 *
 * @category compiling
 * @since 0.1.0
 */
export const compile = (definition: Definition): Either.Either<Plan, CompileError> => {
  let workflow = "unreadable"
  const refuse = (diagnostics: ReadonlyArray<Diagnostic>): Either.Either<Plan, CompileError> =>
    Either.left(new CompileError({ workflow, diagnostics }))
  try {
    workflow = nameText(definition.name)
    const diagnostics = [...(definition.misuses ?? []), ...checks.flatMap((check) => check(definition))]
    return diagnostics.length === 0 ? Either.right(lower(definition)) : refuse(diagnostics)
  } catch (thrown) {
    // Getters, proxies and schemas are code of the caller, and any of them may throw here.
    return refuse([{ code: "CRN107", step: null, message: unreadable(thrownText(thrown)) }])
  }
}
