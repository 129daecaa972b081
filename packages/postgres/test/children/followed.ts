/** A worker over a schema whose run is followed: url, schema, and the arguments of `follow`. */
import { PostgresStore } from "@cairn/postgres"
import { follow } from "../../../sql/test/support/followedWorker.js"

const [url = "", schema = "", ...args] = process.argv.slice(2)
await follow(PostgresStore.layer({ url, schema, maxConnections: 2 }), args)
