/** A worker over a file whose run is followed: the file, and the arguments of `follow`. */
import { SqliteStore } from "@cairn/sqlite"
import { follow } from "../../../sql/test/support/followedWorker.js"

const [filename = "", ...args] = process.argv.slice(2)
await follow(SqliteStore.layer({ filename }), args)
