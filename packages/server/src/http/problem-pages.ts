/**
 * The pages at the addresses that problems have as their type, for whoever follows one.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A browser gets HTML and everybody else Markdown; nobody needs a token.
 */
import { problemPages, type ProblemPage } from "@tropism/api/problem-pages"
import { NotFound } from "@tropism/api/problems"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"

const pages: ReadonlyMap<string, ProblemPage> = new Map(Object.entries(problemPages))

const answered = (title: string, markdown: string, html: string) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    (headers["accept"] ?? "").includes("text/html")
      ? HttpServerResponse.text(inPage(title, html), {
          contentType: "text/html; charset=utf-8",
          headers: varied
        })
      : HttpServerResponse.text(markdown, { contentType: "text/markdown; charset=utf-8", headers: varied })
  )

const varied = { vary: "accept" }

const inPage = (title: string, body: string) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>body{font:16px/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}dt{font-family:monospace}</style></head>
<body>
${body}
</body>
</html>
`

const heading = ({ status, title }: ProblemPage) => `${status} ${title}`

const lists = ({ members, reasons }: ProblemPage) =>
  [
    ["Members", Object.entries(members)],
    ["Reasons", Object.entries(reasons)]
  ].filter((list): list is [string, Array<[string, string]>] => (list[1]?.length ?? 0) > 0)

const asMarkdown = (type: string, page: ProblemPage): string =>
  [
    `# ${heading(page)}`,
    `Type: \`${type}\``,
    page.meaning,
    ...lists(page).map(([name, entries]) =>
      [`## ${name}`, "", ...entries.map(([word, sentence]) => `- \`${word}\`: ${sentence}`)].join("\n")
    ),
    "## What to do",
    page.remedy
  ].join("\n\n") + "\n"

/** Code is the only form that the texts of the pages have. */
const inHtml = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>")

const asHtml = (type: string, page: ProblemPage): string =>
  [
    `<h1>${inHtml(heading(page))}</h1>`,
    `<p>Type: <code>${type}</code></p>`,
    `<p>${inHtml(page.meaning)}</p>`,
    ...lists(page).map(([name, entries]) =>
      [
        `<h2>${name}</h2><dl>`,
        ...entries.map(([word, sentence]) => `<dt>${word}</dt><dd>${inHtml(sentence)}</dd>`),
        "</dl>"
      ].join("\n")
    ),
    `<h2>What to do</h2><p>${inHtml(page.remedy)}</p>`,
    `<p><a href="/problems">All problems</a></p>`
  ].join("\n")

const all = answered(
  "Problems",
  `# Problems\n\n${[...pages].map(([type, page]) => `- [${heading(page)}](${type})`).join("\n")}\n`,
  `<h1>Problems</h1>\n<ul>\n${[...pages].map(([type, page]) => `<li><a href="${type}">${inHtml(heading(page))}</a></li>`).join("\n")}\n</ul>`
)

const one = Effect.gen(function* () {
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const type = url.replace(/[?#].*$/s, "")
  const page = pages.get(type)
  return yield* page === undefined
    ? HttpServerRespondable.toResponse(new NotFound({ detail: "There is no such problem" }))
    : answered(heading(page), asMarkdown(type, page), asHtml(type, page))
})

export const layerProblemPages = Layer.mergeAll(
  HttpRouter.add("GET", "/problems", all),
  HttpRouter.add("GET", "/problems/:name", one)
)
