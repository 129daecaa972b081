/**
 * The write-ahead log of one worker (W8): accepted commits in a file of this host, until the store has them.
 *
 * A record is its length, its CRC-32 and its JSON text. Records of one turn of the event loop are written together, and
 * synced together. A segment is removed once everything in it is settled; a torn tail is where the log ends.
 */
import * as Effect from "effect/Effect"
import { closeSync, fdatasync, ftruncateSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { StoreError } from "../../model/Errors.js"

/** One file of the log. */
interface Segment {
  readonly file: string
  readonly handle: number
  size: number
  /** Records that the store may not have yet. */
  unsettled: number
}

/** Where a record stands. */
export type LogMark = Segment

/** How far a record has got when its commit is accepted: into the system's memory, or onto the disk. */
export type LogSync = "written" | "synced"

const headerBytes = 8
const segmentBytes = 4 * 1024 * 1024

/** After a failure the log is left alone for so long, in milliseconds: a full disk stays full for a while. */
const brokenMs = 2_000

const segmentName = (number: number): string => `${String(number).padStart(8, "0")}.log`
const isSegment = (name: string): boolean => /^\d{8}\.log$/.test(name)

const recordOf = (text: string): Buffer => {
  const body = Buffer.from(text, "utf8")
  const record = Buffer.allocUnsafe(headerBytes + body.length)
  record.writeUInt32LE(body.length, 0)
  record.writeUInt32LE(crc32(body), 4)
  body.copy(record, headerBytes)
  return record
}

/** What a segment holds up to its end or its first damaged record. */
const textsOf = (bytes: Buffer): { readonly texts: ReadonlyArray<string>; readonly whole: boolean } => {
  const texts: Array<string> = []
  let at = 0
  while (at + headerBytes <= bytes.length) {
    const length = bytes.readUInt32LE(at)
    const end = at + headerBytes + length
    if (end > bytes.length) break
    const body = bytes.subarray(at + headerBytes, end)
    if (crc32(body) !== bytes.readUInt32LE(at + 4)) break
    texts.push(body.toString("utf8"))
    at = end
  }
  return { texts, whole: at === bytes.length }
}

/** The records of a directory, in order. `damaged`: a segment that is not the last one ends before its end. */
export const readLog = (directory: string): { readonly texts: ReadonlyArray<string>; readonly damaged: boolean } => {
  const files = readdirSync(directory).filter(isSegment).sort()
  const read = files.map((file) => textsOf(readFileSync(join(directory, file))))
  return { texts: read.flatMap(({ texts }) => texts), damaged: read.slice(0, -1).some(({ whole }) => !whole) }
}

interface Append {
  readonly record: Buffer
  readonly resume: (end: Effect.Effect<LogMark, StoreError>) => void
}

const failure = (problem: string, cause: unknown): StoreError =>
  new StoreError({ reason: "Full", operation: "write the local log", problem, cause })

/** An open log. */
export class LocalLog {
  private readonly waiting: Array<Append> = []
  private segment: Segment | null = null
  private segments = 0
  private scheduled = false
  private syncing = false
  private brokenUntil = 0

  constructor(
    private readonly directory: string,
    private readonly sync: LogSync,
  ) {}

  /** Writes a record. It ends when the record would survive what the log is to survive. */
  append(text: string): Effect.Effect<LogMark, StoreError> {
    return Effect.async<LogMark, StoreError>((resume) => {
      this.waiting.push({ record: recordOf(text), resume })
      this.schedule()
    })
  }

  /** The store has it, or has refused it: nothing has to be kept of it. */
  settled(segment: LogMark): void {
    segment.unsettled -= 1
    if (segment.unsettled > 0) return
    if (segment !== this.segment) this.remove(segment)
    else if (segment.size > 0 && !this.syncing) this.empty(segment)
  }

  close(): void {
    if (this.segment !== null) closeSync(this.segment.handle)
    this.segment = null
  }

  private schedule(): void {
    if (this.scheduled || this.syncing || this.waiting.length === 0) return
    this.scheduled = true
    setImmediate(() => {
      this.scheduled = false
      this.write(this.waiting.splice(0))
    })
  }

  private write(batch: ReadonlyArray<Append>): void {
    if (batch.length === 0) return
    let segment: Segment
    try {
      if (performance.now() < this.brokenUntil) throw new Error("it failed a moment ago")
      segment = this.current()
      this.put(segment, Buffer.concat(batch.map(({ record }) => record)))
    } catch (cause) {
      this.brokenUntil = Math.max(this.brokenUntil, performance.now() + brokenMs)
      const error = failure(`${this.directory}: ${String((cause as Error).message)}`, cause)
      for (const { resume } of batch) resume(Effect.fail(error))
      return
    }
    segment.unsettled += batch.length
    const written = Effect.succeed<LogMark>(segment)
    if (this.sync === "written") {
      for (const { resume } of batch) resume(written)
      return
    }
    this.syncing = true
    fdatasync(segment.handle, (cause) => {
      this.syncing = false
      const end = cause === null ? written : Effect.fail(failure(`${this.directory}: it could not be synced`, cause))
      if (cause !== null) segment.unsettled -= batch.length
      for (const { resume } of batch) resume(end)
      this.schedule()
    })
  }

  private put(segment: Segment, bytes: Buffer): void {
    let done = 0
    try {
      while (done < bytes.length)
        done += writeSync(segment.handle, bytes, done, bytes.length - done, segment.size + done)
      segment.size += bytes.length
    } catch (cause) {
      // Half a record must not stand before the next one: what cannot be cut off is left behind with its segment.
      try {
        ftruncateSync(segment.handle, segment.size)
      } catch {
        this.segment = null
      }
      throw cause
    }
  }

  private current(): Segment {
    const { segment } = this
    if (segment !== null && segment.size < segmentBytes) return segment
    if (segment !== null && segment.unsettled === 0) this.remove(segment)
    const file = join(this.directory, segmentName(++this.segments))
    this.segment = { file, handle: openSync(file, "wx", 0o600), size: 0, unsettled: 0 }
    return this.segment
  }

  private remove(segment: Segment): void {
    try {
      closeSync(segment.handle)
      rmSync(segment.file, { force: true })
    } catch {
      // It holds what the store has already: the next worker finds that out, and removes it.
    }
  }

  private empty(segment: Segment): void {
    try {
      ftruncateSync(segment.handle, 0)
      segment.size = 0
    } catch {
      // As above.
    }
  }
}
