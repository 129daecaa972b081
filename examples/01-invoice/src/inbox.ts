/** The folder of invoices, with what is on file for each recipient. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { InvoiceRequest } from "./workflow.js"

export const invoiceFolder = fileURLToPath(new URL("../invoices/", import.meta.url))

interface OnFile {
  readonly card: string
  readonly email: string
}

/** One request a text file, by file name, which is the run's id too. */
export const readInbox = (): ReadonlyArray<{ readonly file: string; readonly request: InvoiceRequest }> => {
  const onFile = JSON.parse(readFileSync(`${invoiceFolder}customers.json`, "utf8")) as Record<string, OnFile>
  return readdirSync(invoiceFolder)
    .filter((file) => file.endsWith(".txt"))
    .sort()
    .map((file) => {
      const customer = onFile[file]
      if (customer === undefined) throw new Error(`customers.json has no entry for ${file}`)
      return { file, request: { text: readFileSync(`${invoiceFolder}${file}`, "utf8"), ...customer } }
    })
}
