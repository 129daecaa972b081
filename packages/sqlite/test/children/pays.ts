/** A worker over a file whose run pays for its steps: the file, and the arguments of `pay`. */
import { SqliteStore } from "@cairn/sqlite"
import { pay } from "../../../sql/test/support/paidWorker.js"

const [filename = "", ...args] = process.argv.slice(2)
await pay(SqliteStore.layer({ filename }), args)
