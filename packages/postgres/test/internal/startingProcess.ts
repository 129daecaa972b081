/** A process that opens the store for each schema that it is told on its input, and says what came of it. */
import { PostgresDriver } from "@cairn/postgres"
import { Effect, Either } from "effect"
import { createInterface } from "node:readline"

const url = process.argv[2] ?? ""

console.log("waiting")
for await (const schema of createInterface({ input: process.stdin })) {
  const opened = Effect.flatMap(PostgresDriver.make({ url, schema, maxConnections: 1 }), ({ now }) => now)
  const outcome = await Effect.runPromise(Effect.either(Effect.scoped(opened)))
  console.log(Either.isRight(outcome) ? "ready" : outcome.left.message)
}
