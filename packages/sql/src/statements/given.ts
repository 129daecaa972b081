/** Columns of the rows that a statement is given: named apart from those that it reads and writes. */
import type { Column } from "../tables.js"

export const given = (name: string, type: Column["type"] = "text"): Column => ({
  name: `given_${name}`,
  field: name,
  type,
  nullable: true,
})
