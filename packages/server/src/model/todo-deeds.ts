/**
 * Reads off words what is to be done to tasks that are there: complete, delete, change, show.
 */
import { readRef } from "./todo-refs.ts"
import type { Deed, Intent, TaskRef } from "./todo-intents.ts"
import { titleOf, unquoted } from "./todo-words.ts"

/** Reads a deed; undefined where it is none. */
export const readDeed = (text: string): Intent | undefined =>
  readChange(text) ?? readDelete(text) ?? readComplete(text) ?? readShow(text)

const doing = (deed: Deed, ref: TaskRef): Intent => ({ type: "deed", deed, ref })

const taken = (patterns: ReadonlyArray<RegExp>, text: string): string | undefined => {
  for (const pattern of patterns) {
    const found = pattern.exec(text)
    if (found) return found.slice(1).find((group) => group !== undefined) ?? ""
  }
  return undefined
}

const list = "(?:my|the|our) (?:(?:to-?do|to do|task) )?(?:list|tasks|to-?dos|plate)"

const deletions: ReadonlyArray<RegExp> = [
  new RegExp(`^(?:take|cross|strike|wipe|knock|get) (.+?) (?:off|off of|from|out of) ${list}$`, "i"),
  /^(?:take|throw|toss) (?:out|away) (?=(?:the )?(?:task|to-?do|item)\b|#?\d)(.+)$/i,
  /^(?:delete|deleting|remove|removing|erase|drop|scrap|discard|trash|bin|kill|ditch|cancel|purge|dump|eliminate|clear out|clear away|clear off|clear|wipe out|wipe|empty|cut|get rid of|forget about|dismiss|withdraw)(?: off| out)?(?: (.+))?$/i,
  /^(?:i |we )?(?:don't|do not|dont|no longer|won't) (?:need|want|have|be needing)(?: to| to do)? (.+?)(?: any ?more| any longer| now| after all| on (?:my|the) list| on there)*$/i,
  /^(?:i'm|i am) (?:not|no longer) (?:going to|gonna|doing) (.+?)(?: any ?more| after all| any longer)*$/i,
  /^(?:i )?(?:changed my mind about|decided (?:not to|against)) (.+)$/i,
  /^(.+?) (?:is|are|was|isn't|is not|aren't|has been|got) (?:no longer |not |n't )?(?:needed|necessary|relevant|required|important|cancell?ed|called off|off the table)(?: any ?more| any longer| now)*$/i,
  /^(.+?) (?:can go|can be (?:deleted|removed)|should be (?:deleted|removed)|needs to go|must go)$/i
]

const readDelete = (text: string): Intent | undefined => {
  const said = taken(deletions, text)
  if (said === undefined) return undefined
  const ref = readRef(
    said.replace(
      / (?:from|off|off of|out of) (?:my|the|our) (?:(?:to-?do|to do|task) )?(?:list|tasks|to-?dos)$/i,
      ""
    )
  )
  if (ref.kind === "title" && /^(?:(?:to-?do |task )?list|tasks|to-?dos|everything)$/i.test(ref.text))
    return doing({ type: "delete" }, { kind: "all", status: "all" })
  return doing({ type: "delete" }, ref)
}

const over =
  "(?:done|finished|completed?|as done|as finished|as completed?|as being done|off|checked|ticked|accomplished|closed)"

const completions: ReadonlyArray<RegExp> = [
  new RegExp(
    `^(?:mark|set|flag|check|tick|cross|make|put|move|change|switch|update|get|consider|label)(?: off)? (.+?)(?: (?:to|status to|'s status to|as|is|in|into))? (?:${over})(?: (?:now|for me|on ${list}|off ${list}))?$`,
    "i"
  ),
  /^(?:mark|check|tick|cross)(?: off| out)? (?:as )?(?:done|completed?|finished)?:? ?(.+)$/i,
  /^(?:complete|completing|close(?: out)?|finish off|finish up|finish|wrap up|resolve|accomplish|strike|strike off|conclude)(?: (.+))?$/i,
  /^(?:i(?:'ve| have|'m| am)? )?(?:just |already |finally |now |all |also )*(?:done|finished|completed|through|wrapped up|taken care of|took care of|dealt with|accomplished|knocked out|got through|checked off|ticked off|crossed off|sorted out|sorted|managed|handled|got around to|got done|got done with|did)(?: with| doing)?(?: (.+))?$/i,
  /^(?:i )?(?:got|have) (.+) (?:done|finished|completed|out of the way|over with)$/i,
  /^(.+?) (?:is|are|was|were|has been|have been|'s|got|has|have)(?: now| already| all| finally| been| both| just)* (?:done|finished|completed?|over|taken care of|dealt with|sorted|sorted out|handled|out of the way|ready|accomplished|behind me|all set)(?: now| already| too)*$/i,
  /^(.+?)'s (?:now |already |all |finally )?(?:done|finished|completed?|over|sorted|handled)(?: now)?$/i,
  /^(.+?),? (?:done|finished|completed?|check|✓|✔)$/i,
  /^(?:done|finished|completed?):? (.+)$/i
]

const ownVerb =
  /^(?:yes )?(?:i|we|i've|i have|we've|we have|ive)(?: have)?(?: just| already| finally| also| now| actually| managed to)* ((?:[a-z]+ed|bought|paid|sent|wrote|written|took|taken|made|went|got|met|read|ran|fed|brought|told|spoke|gave|found|built|sold|swept|drove|ate|saw|put|cut|set|chose|taught|hung|kept|rang|swam|threw|lent|drew|withdrew|walked|cleaned|did|held|caught|beat|booked|gone|gotten|been|dropped)\b .+)$/i
const notDone =
  /^(?:i|we) (?:need|wanted|want|decided|changed|added|asked|liked|loved|hoped|planned|tried|started|forgot|used|deleted|removed|noticed|realized|realised|wondered)/i
const wasDone =
  /^(?:the |my )?(.+?) (?:has been|have been|was|were|is|are|got|has|have)(?: now| already| finally| all)* ((?:[a-z]{2,}ed|bought|paid|sent|written|taken|made|fed|built|sold|swept|cut|hung|cleaned))$/i

const readComplete = (text: string): Intent | undefined => {
  if (/^(?:show|list|display|view|see|give|tell|read|filter|find|search|add)\b/i.test(text)) return undefined
  if (
    /^(?:what|which|how|when|who|why|is|are|did|have|has|was|does|do)\b/i.test(text) &&
    !/^(?:have|do) (?:it|that) done$/i.test(text)
  )
    return undefined
  if (/\b(?:not|n't|never|yet to)\b.{0,20}\b(?:done|finished|completed?)\b/i.test(text)) return undefined
  const said = taken(completions, text)
  if (said !== undefined)
    return doing(
      { type: "complete" },
      readRef(said.replace(/^(?:the )?status of /i, ""), /^[a-z]+ing\b/i.test(said))
    )
  const own = notDone.test(text) ? undefined : ownVerb.exec(text)?.[1]
  if (own !== undefined)
    return doing(
      { type: "complete" },
      readRef(
        own.replace(/ (?:today|yesterday|this morning|last night|already|just now|earlier|now)$/i, ""),
        true
      )
    )
  const was = wasDone.exec(text)
  return was ? doing({ type: "complete" }, readRef(`${was[2]} ${was[1]}`, true)) : undefined
}

const shows: ReadonlyArray<RegExp> = [
  /^(?:show|display|view|open|see|read|get|tell me about|what(?:'s| is)|describe|give me(?: the)? details (?:of|on|about|for)|(?:show|tell)(?: me)? (?:the )?(?:details?|description|more|notes?) (?:of|on|about|for)|details? (?:of|on|about|for)|more (?:about|on)|what does|what are the details of|what(?:'s| is) the (?:description|title|name|status) of|look at|find|check)(?: me)? ((?:the )?(?:task|to-?do|item)? ?(?:number |no\.? ?|#)?#?\d{1,9})(?: (?:say|about|mean|is))?$/i,
  /^(?:is|are|was|were) (.+?) (?:done|finished|completed?|still (?:open|pending|on (?:my|the) list)|pending|open|on (?:my|the) (?:to-?do )?list)(?: yet| already)?$/i,
  /^(?:did|have) i (?:already |ever )?(?:done |finished |finish |completed |complete |do )?(.+?)(?: yet| already)?$/i,
  /^(?:what(?:'s| is) the status of|status of|what about|how about) (.+)$/i
]

const readShow = (text: string): Intent | undefined => {
  const said = taken(shows, text)
  if (
    said === undefined ||
    /^(?:anything|something|what|any|any (?:tasks|to-?dos)|everything|all|all of it|it all|left|add)\b/i.test(
      said
    )
  )
    return undefined
  const ref = readRef(said, true)
  return ref.kind === "none" || ref.kind === "all" ? undefined : doing({ type: "show" }, ref)
}

const field = "(title|name|text|wording|description|descr|desc|details?|notes?)"
const fieldOf = (word: string | undefined) =>
  /^(?:desc|detail|note)/i.test(word ?? "") ? "description" : "title"
const nounTask = "(?:the |my )?(?:task|to-?do|item) ?"
const number = `(?:${nounTask})?(?:number |no\\.? ?)?#?\\d{1,9}`

/** `[pattern, order]`: what its groups are. */
const changes: ReadonlyArray<readonly [RegExp, (groups: ReadonlyArray<string>) => Intent]> = [
  [
    new RegExp(
      `^(?:change|update|edit|set|modify|replace|make|alter|fix|correct|revise|switch) (?:the )?${field} (?:of|for|on|in) (.+?) ?(?: to say| to be| to| as| with| into|:| -|=) (.+)$`,
      "i"
    ),
    ([word, who, text]) => change(word, who, text)
  ],
  [
    new RegExp(
      `^(?:change|update|edit|set|modify|make|alter|fix|correct|give) (${number}|"[^"]+"|.+?)(?:'s)? ${field} ?(?: to say| to be| to| as| with|:| -|=) (.+)$`,
      "i"
    ),
    ([who, word, text]) => change(word, who, text)
  ],
  [
    new RegExp(`^(?:change|update|edit|modify|alter|set) (?:the )?${field} (?:of|for|on) (.+)$`, "i"),
    ([word, who]) => change(word, who, undefined)
  ],
  [
    /^(?:add|attach|put|write|set|give|include|leave) (?:a |an |the |this |some )?(description|notes?|details?|comment)(?: of)? ?(?:to|on|for|in|of) (.+?) ?(?:: ?| - |, ?| saying(?: that)? | that says | which says | to say | with | that )(.+)$/i,
    ([, who, text]) => change("description", who, text)
  ],
  [
    /^(?:add|attach|put|write|set|include) (?:a |the )?(description|notes?|details?|comment)(?: of| saying|:)? (.+) (?:to|on|for|in) (.+)$/i,
    ([, text, who]) => change("description", who, text)
  ],
  [
    /^(?:add|put|include|write|set|use|append) (.+?) (?:as (?:a |the )?|in(?:to)? the |to the )(?:description|notes?|details?|comment) (?:to|of|for|on|in) (.+)$/i,
    ([text, who]) => change("description", who, text)
  ],
  [/^(?:describe) (.+?) as (.+)$/i, ([who, text]) => change("description", who, text)],
  [
    /^(?:add|attach|give) (?:a |an |the |some )?(description|notes?|details?) (?:to|on|for) (.+)$/i,
    ([, who]) => change("description", who, undefined)
  ],
  [
    /^give (.+?) (?:a |the )?(?:description|note)(?: of| that says| saying|:) (.+)$/i,
    ([who, text]) => change("description", who, text)
  ],
  [
    /^give (.+?) (?:a |the )?(?:new )?(?:title|name)(?: of|:)? (.+)$/i,
    ([who, text]) => change("title", who, text)
  ],
  [
    new RegExp(`^(?:make|let) (${number}|it|that|"[^"]+"|.+?) (?:say|read|be) (.+)$`, "i"),
    ([who, text]) => change("title", who, text)
  ],
  [
    new RegExp(
      `^(${number}|"[^"]+"|.+?) should (?:be|say|read)(?: called| named)?:? (.+?)(?: instead)?$`,
      "i"
    ),
    ([who, text]) => change("title", who, text)
  ],
  [
    new RegExp(
      `^(?:call|name|title|rename|retitle) (${number}|it|that) (?:to |as |into |: ?)?(.+?)(?: instead)?$`,
      "i"
    ),
    ([who, text]) => change("title", who, text)
  ],
  [
    new RegExp(`^(?:update|change|edit|modify|reword|rename) (${number}|it|that|"[^"]+"): (.+)$`, "i"),
    ([who, text]) => change("title", who, text)
  ],
  [
    new RegExp(
      `^(?:change|update|edit|modify|reword|rephrase|rename|retitle|alter|fix|correct) (${number}|it|that|"[^"]+"|.+ (?:task|to-?do|item))$`,
      "i"
    ),
    ([who]) => change("title", who, undefined)
  ]
]

const change = (word: string | undefined, who = "", said: string | undefined): Intent => {
  const ref = readRef(who)
  const which = fieldOf(word)
  const text = said === undefined ? undefined : which === "title" ? titleOf(said) : unquoted(said.trim())
  return doing({ type: "update", [which]: text ?? "" }, ref)
}

const renaming =
  /^(?:rename|retitle|change|update|edit|modify|reword|rephrase|replace|swap|turn|switch|make|convert|correct|set|alter) (.+)$/i

/** Halves of a change of title: what stands before the word may hold it as well. */
const halves = / (?:to say|to read|so it says|to be called|to be|to|into|with|as|for) |: /gi

/** Ways to read one change that are tried. */
const readingsMax = 12

const readChange = (text: string): Intent | undefined => {
  if (/ (?:as|to) (?:done|completed?|finished|pending|not done|incomplete|undone|open)$/i.test(text))
    return undefined
  for (const [pattern, make] of changes) {
    const found = pattern.exec(text)
    if (found) return make(found.slice(1))
  }
  const rest = renaming.exec(text)?.[1]
  if (rest === undefined) return undefined
  const readings = [...rest.matchAll(halves)].slice(0, readingsMax).map((half) => ({
    ref: readRef(rest.slice(0, half.index)),
    title: titleOf(rest.slice(half.index + half[0].length).replace(/ instead$/i, ""))
  }))
  const told = readings.filter(({ ref, title }) => ref.kind !== "none" && title !== "")
  const sure = told.find(({ ref }) => ref.kind !== "title")
  if (sure) return doing({ type: "update", title: sure.title }, sure.ref)
  if (told.length > 0) return { type: "rename", readings: told }
  if (!/^(?:rename|retitle|edit|update|change|modify|reword)/i.test(text)) return undefined
  return doing({ type: "update", title: "" }, readRef(rest))
}
