/** Bodies that run in a transaction of the database, and their commit in it (D20). */
import type {
  CheckpointDriver,
  CommitResult,
  CommitRows,
  StoreError,
  TransactionAccess,
  TransactionEnd,
  TransactionLimits,
} from "@cairn/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Database, Session } from "../Database.js"
import type { Dialect } from "../Dialect.js"

/** The commit of a driver, in a transaction that is open. */
export type CommitIn = (session: Session, rows: CommitRows) => Effect.Effect<CommitResult, StoreError>

type Transact = NonNullable<CheckpointDriver["transact"]>

/** What the first transaction step loads, and nobody else: the SQL client of its body, and all that comes with that. */
const stepClient = Effect.promise(() => import("./stepClient.js"))

export const transactions = (
  dialect: Dialect,
  database: Database,
  commitIn: CommitIn,
): { readonly transact: Transact } => {
  const transact: Transact = <A, E>(
    limits: TransactionLimits,
    body: (access: TransactionAccess) => Effect.Effect<TransactionEnd<CommitRows, A>, E>,
  ) =>
    // Before the transaction is begun: loading takes none of its time.
    Effect.flatMap(Effect.zip(stepClient, database.compiler), ([{ makeStepClient }, compiler]) =>
      database.lend(
        "commit a transaction step",
        limits,
        (connection) =>
          Effect.suspend(() => {
            const client = makeStepClient(dialect, connection, compiler)
            return body(client.access).pipe(
              Effect.onExit(() => client.end),
              Effect.catchAllCause((cause): Effect.Effect<never, E | StoreError> => {
                const trouble = client.trouble()
                // What failed is the database: the body is not to blame, and may run again.
                return trouble !== null && !Cause.isInterruptedOnly(cause)
                  ? Effect.fail(trouble)
                  : Effect.failCause(cause)
              }),
              Effect.zipLeft(client.settled),
            )
          }),
        (session, { commit, value }) =>
          Effect.map(commitIn(session, commit), (result) => ({
            keep: result._tag === "Committed",
            value: { result, value },
          })),
      ),
    )
  return { transact }
}
