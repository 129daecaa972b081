/** What the demo can be asked for on its command line. */
import { parseArgs } from "node:util"
import type { StorePlace } from "./store.js"

export type StoreName = StorePlace["store"]

export interface Flags {
  readonly store: StoreName
  readonly keep: boolean
  readonly help: boolean
}

const storeNames: ReadonlyArray<string> = ["sqlite", "postgres"] satisfies ReadonlyArray<StoreName>
const isStoreName = (name: string): name is StoreName => storeNames.includes(name)

export const usage = `usage: pnpm demo [--store sqlite|postgres] [--keep]

  --store sqlite     keeps the runs in a file (default)
  --store postgres   keeps them in a Postgres that is started for the demo and removed after it;
                     on the server that CAIRN_TEST_POSTGRES_URL names, if it is set
  --keep             leaves the mails, the logs and the SQLite file behind (a Postgres goes all the same)
  --help             prints this`

/** The flags, or in one line what is wrong with them. */
export const readFlags = (given: ReadonlyArray<string>): Flags | { readonly problem: string } => {
  // `pnpm demo -- --keep` hands its own separator on.
  const args = given[0] === "--" ? given.slice(1) : [...given]
  try {
    const { values } = parseArgs({
      args,
      options: {
        store: { type: "string", default: "sqlite" },
        keep: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    })
    const { store, ...others } = values
    if (!isStoreName(store)) return { problem: `There is no store '${store}'; there are: ${storeNames.join(", ")}.` }
    return { store, ...others }
  } catch (error) {
    // Node's advice fills more lines; the first one says what is wrong.
    return { problem: (error as Error).message.split("\n")[0]! }
  }
}
