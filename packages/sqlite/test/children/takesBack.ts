/** A worker over a file whose run takes back what it did: the file, and the arguments of `takeBack`. */
import { SqliteStore } from "@cairn/sqlite"
import { takeBack } from "../../../sql/test/support/takingBackWorker.js"

const [filename = "", ...args] = process.argv.slice(2)
await takeBack(SqliteStore.layer({ filename }), args)
