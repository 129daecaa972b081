/** A connection whose statements all go through its own methods, so that a test can stand around them. */
import type { Connection } from "@effect/sql/SqlConnection"

type Closing = Connection & { readonly pg?: { readonly end: (done: () => void) => void } }

/** What the driver keeps of the client's connection without names: it can be closed. */
export const unnamed = (connection: Connection): object => {
  const { pg } = connection as Closing
  return pg === undefined ? {} : { pg: { end: (done: () => void) => pg.end(done) } }
}
