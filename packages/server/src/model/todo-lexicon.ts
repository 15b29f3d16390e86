/**
 * The small grammar of TodoAssistant's script: classes of words, and rules that are written with them.
 *
 * A rule is a whole clause. `<done>` stands for any word of that class, `{task}`
 * for whatever else is said there, and an apostrophe may be left out, as people do.
 */

const classes: Readonly<Record<string, string>> = {
  noun: "tasks?|to-?dos?|to dos?|items?|entry|entries|points?|reminders?|things?|ones?",
  list: "(?:(?:my|the|our|this|that) )?(?:(?:to-?do|to do|tasks?|shopping|grocery|daily|personal|work|current) )*(?:lists?|tasks|to-?dos|plate|agenda|(?:list )?of (?:tasks|things)(?: to do)?)",
  subject: "i|we|i've|we've|i'm|i am|we are|i have|we have|i had",
  adverb:
    "just|already|finally|now|also|really|actually|definitely|only|even|simply|both|all|since|recently|at last|too|so far|completely|fully|totally|successfully|been|should|so|pretty much|basically",
  when: "now|today|yesterday|tonight|already|too|as well|earlier|earlier today|just now|at last|finally|so far|then|again|for me|last (?:night|week|month)|this (?:morning|afternoon|evening|week|month|weekend)|(?:on|since|last) [a-z]+day|(?:a|an|\\d+) (?:minute|moment|while|hour|day)s? ago|by now|any ?more|any longer|after all|instead|from now on|if (?:possible|that's ok(?:ay)?)",
  be: "is|are|was|were|has been|have been|had been|got|gets|has|have|'s|'re|'s been|'ve been|being",
  done: "done|finished|completed?|over|over with|over and done with|ready|accomplished|closed|closed out|handled|settled|dealt with|sorted|sorted out|taken care of|wrapped up|out of the way|behind me|all set|ticked|ticked off|checked|checked off|crossed off|crossed out|crossed|off|did|achieved|done and dusted|done with|finished with",
  open: "pending|open|not done|not finished|incomplete|undone|unfinished",
  mark: "mark|set|flag|check|tick|cross|make|put|move|change|switch|update|consider|label|count|treat|log|record|register|turn|call",
  finish:
    "complete|close|close out|close off|finish off|finish up|finish|wrap up|resolve|accomplish|strike off|conclude|tick off|check off|cross off|cross out|mark off|tick|check|cross|strike out",
  delete:
    "delete|remove|erase|drop|scrap|discard|trash|bin|kill|ditch|cancel|purge|dump|eliminate|clear|clear out|clear away|clear off|clear up|wipe|wipe out|wipe away|empty|cut|cut out|get rid of|forget|forget about|never mind|never mind about|nix|axe|lose|dismiss|withdraw|throw out|throw away|toss|toss out|chuck|chuck out|nuke|strike|scratch|skip|del",
  deleted:
    "deleted|removed|erased|dropped|scrapped|discarded|trashed|binned|killed|ditched|purged|cleared|wiped|taken off|thrown out|thrown away|struck off|got rid of|gotten rid of",
  unneeded:
    "needed|necessary|relevant|required|important|happening|on|a thing|wanted|valid|current|going ahead|taking place|applicable",
  dropped:
    "cancell?ed|called off|off the table|obsolete|irrelevant|unnecessary|redundant|moot|pointless|not happening|fallen through|scrapped|void|no more",
  edit: "change|update|edit|set|modify|replace|make|alter|fix|correct|revise|switch|adjust|amend|rewrite|reword|rephrase|put|turn|swap|convert|give|need to change",
  rename: "rename|retitle|relabel|reword|rephrase|call|name|title",
  title: "title|name|text|wording|label|heading|caption",
  description: "description|descr|desc|details?|notes?|comment|remark|memo",
  field:
    "title|name|text|wording|label|heading|caption|description|descr|desc|details?|notes?|comment|remark|memo",
  of: "of|for|on|in|to",
  as: "to say|to be called|to be|to read|to become|so it says|so it reads|so that it says|to:?|as:?|into:?|with|:|-|=|->|=>|→",
  must: "should|must|shall|ought to|needs to|need to|has to|have to|is supposed to|was supposed to|is meant to|was meant to|'s supposed to|'s meant to|was to|is to|is intended to|would better",
  say: "be called|be named|be titled|say|read|be|become|have said|have been|have read|have been called|state|go",
  wrong:
    "wrong|incorrect|misspell?ed|misspelt|mistyped|outdated|not right|not correct|not quite right|out of date|a typo|badly worded|spelled wrong|spelt wrong|off"
}

const expand = (pattern: string): string =>
  pattern.replace(/(?<!\?)<(\w+)>/g, (_, name: string) => `(?:${expand(classes[name] ?? name)})`)

/** A rule for a whole clause. */
export const rule = (pattern: string): RegExp =>
  new RegExp(
    `^(?:${expand(pattern)
      .replace(/\{(\w+)\}/g, "(?<$1>.+?)")
      .replaceAll("'", "'?")})$`,
    "i"
  )

/** A rule for how a clause begins or ends. */
export const opening = (pattern: string): RegExp =>
  new RegExp(`^(?:${expand(pattern).replaceAll("'", "'?")})`, "i")
export const ending = (pattern: string): RegExp =>
  new RegExp(`(?:${expand(pattern).replaceAll("'", "'?")})$`, "i")

export type Said = Readonly<Record<string, string | undefined>>

/** What the first rule that fits a clause has heard. */
export const heardBy = (rules: ReadonlyArray<RegExp>, text: string): Said | undefined => {
  for (const each of rules) {
    const found = each.exec(text)
    if (found) return found.groups ?? {}
  }
  return undefined
}
