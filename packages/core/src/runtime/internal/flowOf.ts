/** What a run's start fixes of its flow control: the key that limits count by, and its priority; and what claims are told. */
import * as Either from "effect/Either"
import type { Definition } from "../../dsl/Definition.js"
import { durationMs } from "../../dsl/OnUnknown.js"
import { InvalidValue, type InvalidId } from "../../model/Errors.js"
import { checkId } from "../../model/Ids.js"
import { thrownText } from "../../model/internal/thrownText.js"
import type { NewRunRow } from "../../store/CheckpointDriver.js"
import type { ClaimLimits } from "../../store/FlowRows.js"

/** The user's functions, which may throw and may give anything. */
const asked = <A>(place: string, ask: () => A): Either.Either<A, InvalidValue> =>
  Either.try({
    try: ask,
    catch: (thrown) =>
      new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem: `it threw: ${thrownText(thrown)}` }),
  })

const keyOf = ({ limits, name }: Definition, input: unknown): Either.Either<string | null, InvalidId | InvalidValue> =>
  limits?.perKey === undefined
    ? Either.right(null)
    : Either.flatMap(
        asked(`limits.perKey.key of workflow '${name}'`, () => limits.perKey!.key({ input })),
        (key) => checkId("limit key", key),
      )

/** A priority that a store can order by. */
export const checkPriority = (place: string, value: unknown): Either.Either<number, InvalidValue> =>
  Number.isSafeInteger(value)
    ? Either.right(value as number)
    : Either.left(
        new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem: "a priority is a whole number" }),
      )

const priorityOf = ({ name, priority }: Definition, input: unknown, usual: number) => {
  if (priority === undefined) return Either.right(usual)
  const place = `priority of workflow '${name}'`
  return typeof priority === "number"
    ? checkPriority(place, priority)
    : Either.flatMap(
        asked(place, () => priority({ input })),
        (value) => checkPriority(place, value),
      )
}

/** Key and priority of a run that starts with an input. `usual`: the priority where the workflow names none. */
export const flowOf = (
  definition: Definition,
  input: unknown,
  usual = 0,
): Either.Either<Pick<NewRunRow, "flowKey" | "priority">, InvalidId | InvalidValue> =>
  Either.all({ flowKey: keyOf(definition, input), priority: priorityOf(definition, input, usual) })

/** What claims are told of a workflow's limits; undefined where it has none. */
export const limitsOf = ({ limits }: Definition): ClaimLimits | undefined => {
  if (limits === undefined) return undefined
  const { concurrency, perKey, rate } = limits
  if (concurrency === undefined && perKey?.concurrency === undefined && rate === undefined) return undefined
  return {
    running: concurrency ?? null,
    perKey: perKey?.concurrency ?? null,
    rate: rate === undefined ? null : { count: rate.count, perMs: durationMs(rate.per), perKey: rate.perKey ?? false },
  }
}
