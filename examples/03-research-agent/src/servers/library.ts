/** Documents that can be searched and read: the files of `library/`. */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { notFound, type Api } from "./server.js"

const folder = fileURLToPath(new URL("../../library/", import.meta.url))

const texts = new Map(
  readdirSync(folder)
    .filter((file) => file.endsWith(".md"))
    .sort()
    .map((file) => [
      file.replace(/\.md$/, ""),
      readFileSync(`${folder}${file}`, "utf8")
        .replace(/^#.*\n/, "")
        .trim()
        .replaceAll("\n", " "),
    ]),
)

export const library: Api = ({ url, log }) => {
  log({ asked: `${url.pathname}${url.search}` })
  if (url.pathname === "/search") {
    const words = url.searchParams.get("words") ?? ""
    const found = [...texts].filter(([, text]) => text.includes(words)).map(([document]) => document)
    return { status: 200, body: found, afterMs: 40 }
  }
  if (url.pathname === "/sources") {
    const value = url.searchParams.getAll("document").map((document) => texts.get(document) ?? "")
    const token = createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16)
    return { status: 200, body: { value, token }, afterMs: 40 }
  }
  const text = texts.get(decodeURIComponent(url.pathname.replace(/^\/documents\//, "")))
  return text === undefined ? notFound : { status: 200, body: text, afterMs: 40 }
}
