/** A worker over a schema whose run carries a window: url, schema, and the arguments of `carry`. */
import { PostgresStore } from "@cairn/postgres"
import { carry } from "../../../sql/test/support/windowWorker.js"

const [url = "", schema = "", ...args] = process.argv.slice(2)
await carry(PostgresStore.layer({ url, schema, maxConnections: 2 }), args)
