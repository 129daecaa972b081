/**
 * What workers did, in the order in which they did it: one append-only file for all of them. A line is written before the
 * worker goes on, so that a kill takes none of them back.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"

/** `ran`: a step's function was begun. `accepted`: its commit was. */
export type TraceEvent = "ran" | "accepted"

const { CHAOS_TRACE: file = "" } = process.env

export const note = (event: TraceEvent, runId: string, step: string): void => {
  if (file !== "") appendFileSync(file, `${event} ${runId} ${step}\n`)
}

export interface TraceFigures {
  readonly accepted: number
  /** Steps that were begun again although they had been accepted: what a kill has cost. */
  readonly repeated: ReadonlyArray<string>
}

/** Reads a trace. Only local steps are looked at: `s1` to `s10`. */
export const readTrace = (trace: string): TraceFigures => {
  const accepted = new Set<string>()
  const repeated: Array<string> = []
  const lines = existsSync(trace) ? readFileSync(trace, "utf8").split("\n") : []
  for (const line of lines) {
    const [event, runId, step] = line.split(" ")
    if (step === undefined || !/^s\d+$/.test(step)) continue
    const of = `${runId}/${step}`
    if (event === "accepted") accepted.add(of)
    else if (accepted.has(of)) repeated.push(of)
  }
  return { accepted: accepted.size, repeated }
}
