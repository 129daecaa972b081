/** Tables of plain text. */

/** Pads columns, numbers to the right; a line under the head. */
export const textTable = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string | number>>): string => {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => String(row[column]).length)))
  const line = (cells: ReadonlyArray<string | number>): string =>
    `| ${cells.map((cell, column) => (typeof cell === "number" ? String(cell).padStart(widths[column]!) : String(cell).padEnd(widths[column]!))).join(" | ")} |`
  return [line(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rows.map(line)].join("\n")
}
