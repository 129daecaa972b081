/** The orders of the shop: a folder of files here, a database or an API elsewhere. The workflow only reads from it. */
import { Context, Data, Effect, Layer } from "effect"
import { readdirSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"

const orderFolder = fileURLToPath(new URL("../orders/", import.meta.url))

export const orderNumbers = (): ReadonlyArray<string> =>
  readdirSync(orderFolder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => file.replace(/\.json$/, ""))
    .sort()

/** An order as it lies there: it has not passed its schema yet. */
export const readOrder = async (number: string): Promise<unknown> =>
  JSON.parse(await readFile(`${orderFolder}${number}.json`, "utf8"))

export class OrderUnreadable extends Data.TaggedError("OrderUnreadable")<{
  readonly number: string
  readonly cause: unknown
}> {
  override get message() {
    return `Order ${this.number} could not be read.`
  }
}

export class Orders extends Context.Tag("Orders")<
  Orders,
  { readonly read: (number: string) => Effect.Effect<unknown, OrderUnreadable> }
>() {
  static readonly layer = Layer.succeed(Orders, {
    read: (number) =>
      Effect.tryPromise({
        try: () => readOrder(number),
        catch: (cause) => new OrderUnreadable({ number, cause }),
      }),
  })
}
