/** Paid calls and their budgets: each act is one transaction, in which the counters are locked in one order (D39 to D41). */
import {
  counting,
  type BeginCallResult,
  type CallRow,
  type CallSumRow,
  type CheckpointDriver,
  type Counted,
  type Counter,
  type NewCallRow,
  type SpendRow,
} from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database, Row, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, computed, readAll, readFirst } from "../readRow.js"
import {
  callStatements,
  endedColumns,
  spendColumns,
  startedColumns,
  sumColumns,
  waitingColumns,
} from "../statements/calls.js"
import { runStatements } from "../statements/runs.js"
import { callCostColumns } from "../tables.js"

type Calls = Pick<CheckpointDriver, "beginCall" | "endCall" | "findSpend" | "listCalls" | "sumCalls">

type Limited = NewCallRow["counters"][number] & { readonly limit: number }

const negative = ({ calls, reserved, spent, unknown }: Counted): Counted => ({
  spent: -spent,
  reserved: -reserved,
  calls: -calls,
  unknown: -unknown,
})

const isSame = (a: Counter, b: Counter): boolean => a.kind === b.kind && a.name === b.name

/** What a counter stood at; what has come to the largest sum stays there. */
const without = (counted: number, added: number): number => (counted >= counting.most ? counted : counted - added)

/** The counter that has no room for what was added to it just now. */
const overdrawn = (
  { counters }: NewCallRow,
  spend: ReadonlyArray<SpendRow>,
  added: Counted,
): { readonly of: Limited; readonly before: SpendRow } | null => {
  for (const of of counters) {
    if (of.limit === null) continue
    const after = spend.find((row) => isSame(row, of))
    if (after === undefined) continue
    const before = {
      ...after,
      spent: without(after.spent, added.spent),
      reserved: without(after.reserved, added.reserved),
    }
    if (!counting.hasRoom(of.limit, before, added)) return { of: of as Limited, before }
  }
  return null
}

export const calls = (dialect: Dialect, database: Database): Calls => {
  const statements = callStatements(dialect)
  const { now, nowColumns } = runStatements(dialect)

  const started = (operation: string, rows: ReadonlyArray<Row>) =>
    attempt(() => readFirst<Pick<CallRow, "startedAt">>(operation, startedColumns, rows)?.startedAt ?? null)

  const reserve = (session: Session, operation: string, row: NewCallRow, startedAt: number) =>
    Effect.gen(function* () {
      const { counters, namespace } = row
      if (counters.length === 0) return { _tag: "Begun" } as BeginCallResult
      const added = counting.begun(row)
      const counted = yield* session.run(yield* attempt(() => statements.count(namespace, counters, startedAt, added)))
      const spend = yield* attempt(() => readAll<SpendRow>(operation, spendColumns, counted))
      const none = overdrawn(row, spend, added)
      if (none === null) return { _tag: "Begun" } as BeginCallResult
      // Nothing is changed: what was added to find it out is taken back, under the same locks.
      yield* session.run(yield* attempt(() => statements.count(namespace, counters, startedAt, negative(added))))
      yield* session.run(statements.forget(row))
      const { limit, ...counter } = none.of
      const rows = yield* session.run(statements.waiting(namespace, counter, startedAt))
      const { waiting } = yield* attempt(
        () => readFirst<{ readonly waiting: number }>(operation, waitingColumns, rows) ?? { waiting: 0 },
      )
      const { reserved, spent } = none.before
      return { _tag: "Refused", counter, limit, spent, reserved, waiting } as BeginCallResult
    })

  const beginCall: CheckpointDriver["beginCall"] = (row) => {
    const operation = `begin a call of run '${row.runId}'`
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const inserted = yield* session.run(yield* attempt(() => statements.begin(row)))
        const startedAt = yield* started(operation, inserted)
        if (startedAt !== null) return yield* reserve(session, operation, row, startedAt)
        const known = yield* started(operation, yield* session.run(statements.find(row)))
        return { _tag: known === null ? "Lost" : "Begun" } as BeginCallResult
      }),
    )
  }

  const endCall: CheckpointDriver["endCall"] = (row) => {
    const operation = `end a call of run '${row.runId}'`
    return database.transaction(operation, "usual", (session) =>
      Effect.gen(function* () {
        const rows = yield* session.run(yield* attempt(() => statements.end(row)))
        const ended = yield* attempt(() =>
          readFirst<Pick<CallRow, "startedAt" | "atMost">>(operation, endedColumns, rows),
        )
        if (ended === null) return false
        const { counters, end, namespace } = row
        if (counters.length === 0) return true
        const added = counting.ended(end, ended.atMost)
        yield* session.run(yield* attempt(() => statements.count(namespace, counters, ended.startedAt, added)))
        return true
      }),
    )
  }

  const findSpend: CheckpointDriver["findSpend"] = (namespace, counters) => {
    const operation = "read what was spent"
    if (counters.length === 0) return Effect.succeed([])
    return database.snapshot(operation, (session) =>
      Effect.gen(function* () {
        const clock = yield* session.run(now)
        const at = yield* attempt(() => readFirst<{ readonly now: number }>(operation, nowColumns, clock)!.now)
        const rows = yield* session.run(statements.findSpend(namespace, counters, at))
        const found = yield* attempt(() => readAll<SpendRow>(operation, spendColumns, rows))
        return counters.map(
          ({ kind, name }) =>
            found.find((row) => isSame(row, { kind, name })) ?? {
              kind,
              name,
              spent: 0,
              reserved: 0,
              calls: 0,
              unknown: 0,
            },
        )
      }),
    )
  }

  const query = <A>(
    operation: string,
    limit: number,
    columns: ReadonlyArray<ReturnType<typeof computed>>,
    statement: () => ReturnType<typeof statements.sum>,
  ) =>
    limit < 1
      ? Effect.succeed([])
      : attempt(statement).pipe(
          Effect.flatMap((made) => database.query(operation, made)),
          Effect.flatMap((rows) => attempt(() => readAll<A>(operation, columns, rows))),
        )

  const listCalls: CheckpointDriver["listCalls"] = (page) =>
    query<CallRow>(`list the calls of run '${page.runId}'`, page.limit, callCostColumns, () => statements.list(page))

  const sumCalls: CheckpointDriver["sumCalls"] = (asked) =>
    query<CallSumRow>("sum calls", asked.limit, sumColumns, () => statements.sum(asked))

  return { beginCall, endCall, findSpend, listCalls, sumCalls }
}
