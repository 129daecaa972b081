/** A worker over a file whose run carries a window: the file, and the arguments of `carry`. */
import { SqliteStore } from "@cairn/sqlite"
import { carry } from "../../../sql/test/support/windowWorker.js"

const [filename = "", ...args] = process.argv.slice(2)
await carry(SqliteStore.layer({ filename }), args)
