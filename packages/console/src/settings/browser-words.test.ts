/**
 * What browsers call themselves, as people know them.
 */
import { expect, it } from "vitest"
import { browserText } from "./browser-words.ts"

it.each([
  ["curl/8.9", /^curl\/8\.9$/],
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", /Firefox.+Linux/],
  ["Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", /Edge.+Windows/],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 Version/18.0 Safari/604.1",
    /Safari.+iOS/
  ],
  ["Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", /Chrome.+Android/]
])("of %s is %s", (name, words) => {
  expect(browserText(name)).toMatch(words)
})

it("without a name they are told apart from none", () => {
  expect(browserText(null)).toMatch(/\S/)
})
