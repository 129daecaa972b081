/** A worker over a schema whose run pays for its steps: url, schema, and the arguments of `pay`. */
import { PostgresStore } from "@cairn/postgres"
import { pay } from "../../../sql/test/support/paidWorker.js"

const [url = "", schema = "", ...args] = process.argv.slice(2)
await pay(PostgresStore.layer({ url, schema, maxConnections: 2 }), args)
