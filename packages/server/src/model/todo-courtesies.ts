/**
 * What TodoAssistant's script takes off a clause before it reads it: greetings, "could you", "please", a smile.
 */
import { ending, opening } from "./todo-lexicon.ts"
import { imperative, spelled } from "./todo-verbs.ts"

const chat =
  "hi|hello|hey|hiya|ok|okay|okey|so|well|umm?|uh|hmm+|please|pls|plz|kindly|now|also|then|and|but|just|actually|oh|oops|ah|yes|yeah|yep|great|cool|perfect|thanks|thank you|thx|cheers|alright|right|todo ?assistant|assistant|hey there|hi there|hello there|good (?:morning|afternoon|evening)|quick(?:ly)?|by the way|btw|fyi|finally|next|lastly|wait|sorry|whoops|argh|maybe|perhaps|no(?! (?:need|longer|more|reason|point))|nope|again|first|firstly|secondly|first of all|for now|from now on|one more thing|another thing|whenever you can|if (?:possible|you (?:can|could|like|don't mind))|when you (?:can|get a chance)"

const asked = opening(
  [
    `(?:${chat})\\b[,!.:-]* `,
    "(?:can|could|would|will|may|might) (?:you|u|we|ya)(?: please| pls| plz| kindly| also| just| maybe| quickly| be so kind as to| possibly)* ",
    "(?:can|could|may|might) i(?: please| also)* (?=(?:see|get|have|add|view|look)\\b)",
    "(?:i would|i'd) (?:really )?(?:like|love) (?:you )?to (?!remember|have (?:done|finished))",
    "(?:i would|i'd) (?:like|love) (?=(?:a|an|the|my) )",
    "i(?: would)? (?:want|need) (?:you|u) to |i(?: would)? (?:want|like)(?: it if| that) (?:you|u)(?: would| could)? |i want for you to |i(?: wanna| want to| would like to) (?=(?:add|see|delete|remove|complete|mark|rename|change|update|know|view|check|create|edit|clear|list|put|tick|cross)\\b)",
    'i\'m going to need you to |i am going to need you to |i need (?="[^"]+" (?:added|removed|deleted|marked))',
    "let's |let me |lemme |help me (?!remember)|go ahead and |you (?:can|could|may|should|might)(?: now| also| just| go ahead and)* |(?:i think )?(?:you|we) should |i was wondering if you could |it would be (?:great|nice|good) if you (?:could )?|i'd appreciate it if you (?:could|would) |do me a favou?r and |be so kind as to |feel free to |be a (?:dear|darling|star) and ",
    "(?:would|will) it be (?:possible|ok|okay) (?:for you )?to |is it possible (?:for you )?to |are you able to |is there (?:any|a) (?:way|chance) (?:you (?:can|could) |to )|any chance you (?:can|could) |(?:do )?you think you (?:can|could) |mind if you |i (?:have|need) to ask you to ",
    "it(?:'s| is)? time to (?=(?:add|delete|remove|complete|mark|rename)\\b)|time to (?=(?:add|delete|remove|complete|mark|rename)\\b)"
  ].join("|")
)

/** What is followed by a verb in -ing. */
const askedByNoun = opening(
  "(?:would|do) you mind |(?:what|how) about (?=[a-z]+ing\\b)|mind (?=[a-z]+ing\\b)|consider (?=[a-z]+ing\\b)|any chance of |how do you feel about |thanks for (?=[a-z]+ing\\b)"
)

const behind = ending(
  ",? (?:please|pls|plz|thanks(?: a lot| so much| in advance)?|thank you(?: so much| very much)?|thx|ty|tks|cheers|for me|will (?:you|u)|would (?:you|u)(?: please)?|(?:could|can) (?:you|u)(?: please| do (?:that|it)| (?:tell|show|remind) me)?(?: for me)?|can we(?: do that)?|ok|okay|alright|yeah|right|if (?:you|u) (?:can|could|would|don't mind)|if (?:possible|that's ok(?:ay)?|you please|at all possible)|when you (?:can|get a chance)|right away|right now|asap|mate|buddy|dude|love|lol|haha|would you|is that ok(?:ay)?)"
)

/** Courtesies that one clause may have before or behind it. */
const courtesiesMax = 8

const smile =
  /(?:(?<=[.!?,]|\b(?:please|pls|plz|thanks|thx|ta|cheers|you|mate|love))\s+(?:xD|xx?)|\s*(?:[:;]-?[)(DP](?!\w)|<3|[\u{1f600}-\u{1f64f}\u{1f389}\u{1f44d}\u{1f44c}])|\s*\u{2764}\u{fe0f}?)+$/u

/** A clause without marks and smiles at its end. */
export const withoutEnd = (text: string): string =>
  text.slice(0, -endMaxChars) +
  text
    .slice(-endMaxChars)
    .replace(smile, "")
    .replace(/[\s.!?…,]{1,20}$/, "")

const endMaxChars = 40

/** A clause without the courtesies around it, its first word spelled as a command is. */
export const bare = (clause: string): string => {
  let text = withoutEnd(clause.trim())
  for (let count = 0; count < courtesiesMax; count++) {
    const isNoun = askedByNoun.test(text)
    const less = text.replace(isNoun ? askedByNoun : asked, "").trim()
    if (less === text || less === "") break
    text = isNoun ? imperative(less) : less
  }
  for (let count = 0; count < courtesiesMax; count++) {
    const less = withoutEnd(text.slice(0, -behindMaxChars) + text.slice(-behindMaxChars).replace(behind, ""))
    if (less === text || less === "") break
    text = less
  }
  return spelled(text)
}

const behindMaxChars = 60
