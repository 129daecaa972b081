/**
 * Publishes pages. It honours `Idempotency-Key`, as a CMS should: the same key with the same article is answered as the first
 * time, and nothing is published; with another article it is refused. Without a key, each request is a page.
 */
import { notFound, type Api } from "./server.js"

export interface CmsEntry {
  readonly event: "published" | "known" | "refused"
  readonly key: string | null
  readonly page: string
  readonly text: string
}

const published = new Map<string, { readonly page: string; readonly article: string }>()
let pages = 0

export const cms: Api = ({ url, body, key, log }) => {
  if (url.pathname !== "/pages") return notFound
  const { text } = body as { readonly text: string }
  const article = JSON.stringify(body)
  const say = (event: CmsEntry["event"], page: string): void => log({ event, key, page, text } satisfies CmsEntry)
  const earlier = key === null ? undefined : published.get(key)
  if (earlier !== undefined && earlier.article !== article) {
    say("refused", earlier.page)
    return { status: 422, body: { problem: "This key was used with another article." }, afterMs: 0 }
  }
  const page = earlier?.page ?? `/pages/${++pages}`
  say(earlier === undefined ? "published" : "known", page)
  if (key !== null) published.set(key, { page, article })
  return { status: 201, body: { page }, afterMs: 40 }
}
