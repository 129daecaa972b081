/** What must not grow with time (field case P078). */
import path from "node:path"
import { describe, expect, it } from "vitest"
import { usePlaces } from "./internal/places.js"
import { walLoad } from "../src/walLoad.js"

const places = usePlaces()
const megabyte = 1024 * 1024

describe("the write-ahead log of a SQLite file", () => {
  it("stays small under 64 MB of outputs, although a listing is left open and a run sleeps", async () => {
    const filename = path.join(places.folder, "growth.db")
    const figures = await walLoad({ filename, outputChars: 800_000, enough: ({ runs }) => runs >= 20 })
    expect(figures.writtenBytes).toBeGreaterThanOrEqual(60 * megabyte)
    expect(figures.fileBytes).toBeGreaterThanOrEqual(60 * megabyte)
    // SQLite brings it into the file at 4 MB; a commit of 0.8 MB and those beside it come on top.
    expect(figures.largestWalBytes).toBeGreaterThan(0)
    expect(figures.largestWalBytes).toBeLessThan(16 * megabyte)
    // It can be cut to nothing only where nobody reads in a transaction: the listing, half way through, does not.
    expect(figures.walBytesAfterWriter).toBe(0)
    expect(figures.walBytesAfterClose).toBe(0)
    expect(figures.listed).toEqual(Array.from({ length: 12 }, (_, n) => `parked-${n + 10}`))
    expect(figures.sleeper).toBe("sleeping")
  })
})
