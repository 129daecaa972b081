/** A worker over a schema whose run takes back what it did: url, schema, and the arguments of `takeBack`. */
import { PostgresStore } from "@cairn/postgres"
import { takeBack } from "../../../sql/test/support/takingBackWorker.js"

const [url = "", schema = "", ...args] = process.argv.slice(2)
await takeBack(PostgresStore.layer({ url, schema, maxConnections: 2 }), args)
