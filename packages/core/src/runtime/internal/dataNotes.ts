/**
 * What steps have read of data that has versions, as their commits keep it: a record beside that of the step, at a path and in a
 * scope that begin with a colon, which no name of a user does. A resume reads those of the scopes that are open (X7).
 */
import type { Json } from "../../dsl/DataVersion.js"
import type { StepRecord } from "../../model/Records.js"

/** A record without what only its commit knows. */
type Aside = Omit<StepRecord, "committedAt" | "seq">

/** One read. `snapshot`: what the database called the state that it saw, for people; null where it has no such name. */
export interface DataRead {
  readonly name: string
  readonly key: Json
  readonly token: Json
  readonly snapshot: string | null
}

/** A read whose data has moved, and with which a person was asked. `current` is null where nobody could say more than that. */
export interface AskedRead extends Pick<DataRead, "name" | "key" | "token"> {
  readonly current: Json
}

/** What one committed step has read. */
export interface DataNote {
  readonly path: string
  readonly seq: number
  readonly reads: ReadonlyArray<DataRead>
}

const prefix = ":data/"
const asked = ":data@"

const aside = (path: string, scope: string, effect: string, reads: ReadonlyArray<unknown>): Aside => ({
  path,
  scope: dataScope(scope),
  effect,
  result: JSON.stringify(reads),
  idempotencyKey: null,
  attempts: 1,
  durationMs: 0,
})

/** Where the notes of a scope's steps stand. */
export const dataScope = (scope: string): string => `${prefix}${scope}`

export const isDataScope = (scope: string): boolean => scope.startsWith(prefix)

/** What a step that has read something leaves beside its own record. */
export const dataRecord = (path: string, scope: string, reads: ReadonlyArray<DataRead>): Aside =>
  aside(`${prefix}${path}`, scope, "data", reads)

/** That a person was asked about data of a step: whoever goes on with the run has the answer that it may. */
export const askedRecord = (path: string, scope: string, seq: number, reads: ReadonlyArray<AskedRead>): Aside =>
  aside(`${asked}${seq}/${path}`, scope, "data:asked", reads)

export class DataNotes {
  private readonly noted = new Map<string, DataNote>()
  private readonly known = new Map<string, ReadonlyArray<AskedRead>>()

  /** `isDue`: the run has rested since it was asked whether its data is as it was. */
  constructor(public isDue: boolean) {}

  /** Whether what an earlier owner left was read. */
  isRead = false
  private hasRested = false

  /** The run waits here, with what it has read. */
  rest(): void {
    this.hasRested = true
  }

  /** Something that it has waited for is over. */
  goOn(): void {
    if (this.hasRested && this.noted.size > 0) this.isDue = true
    this.hasRested = false
  }

  note({ path, result, seq }: Pick<StepRecord, "path" | "result" | "seq">): void {
    const reads: unknown = JSON.parse(result ?? "[]")
    if (path.startsWith(prefix)) {
      const of = path.slice(prefix.length)
      this.noted.set(of, { path: of, seq, reads: reads as ReadonlyArray<DataRead> })
    } else {
      const of = path.slice(path.indexOf("/") + 1)
      this.known.set(of, [...(this.known.get(of) ?? []), ...(reads as ReadonlyArray<AskedRead>)])
    }
  }

  /** Nothing of a turn or an item is looked at again. */
  drop(scope: string): void {
    for (const notes of [this.noted, this.known]) {
      for (const path of [...notes.keys()]) if (path.startsWith(`${scope}/`)) notes.delete(path)
    }
  }

  /** The first committed comes first. */
  get all(): ReadonlyArray<DataNote> {
    return [...this.noted.values()].sort((a, b) => a.seq - b.seq)
  }

  /** What a person was asked about, who has let the run go on. */
  askedOf(path: string): ReadonlyArray<AskedRead> {
    return this.known.get(path) ?? []
  }
}
