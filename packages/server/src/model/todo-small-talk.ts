/**
 * Reads off words what is said between requests: greetings, thanks, yes and no, and what the script cannot do.
 */
import type { Intent } from "./todo-intents.ts"

const sayings: ReadonlyArray<
  readonly [
    Exclude<
      Intent["type"],
      | "add"
      | "list"
      | "deed"
      | "rename"
      | "mention"
      | "that"
      | "aside"
      | "beyond"
      | "unknown"
      | "doubtful"
      | "more"
    >,
    RegExp
  ]
> = [
  [
    "yes",
    /^(?:yes|y|yep|yeah|yup|ya|sure|ok|okay|do it|do that|go ahead|please do|correct|right|that's right|that is right|confirm|confirmed|absolutely|definitely|of course|exactly|affirmative|yes please|sure thing|go for it|sounds good|yes,? (?:do it|go ahead|delete (?:it|them)|add it|i'm sure|that one|i am sure)|i'm sure|i am sure)$/i
  ],
  [
    "no",
    /^(?:no|n|nope|nah|no thanks|no thank you|cancel|cancel that|never ?mind|nevermind|don't|do not|stop|forget it|forget that|leave it|neither|none|none of (?:them|these|those)|not now|no,? (?:leave it|don't|never ?mind|forget it|stop))$/i
  ],
  [
    "hello",
    /^(?:hi|hello|hey|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|day)|(?:hi|hello|hey)(?: there| again| assistant| todo ?assistant)?|what'?s up|sup|how are you(?: doing)?(?: today)?|how's it going|(?:hi|hello|hey)[,!]* how are you(?: doing)?(?: today)?|nice to meet you)$/i
  ],
  [
    "thanks",
    /^(?:(?:ok |okay |great |perfect |cool |awesome )?(?:thanks|thank you|thx|ty|cheers)(?: (?:a lot|so much|very much|again|a bunch|for (?:your|the) help|for that|that's all))?|great|perfect|awesome|cool|nice|nice work|good job|well done|great job|you're the best|much appreciated|got it|that's all|that is all|wonderful|excellent)$/i
  ],
  [
    "bye",
    /^(?:bye|goodbye|bye bye|see you(?: later| soon| tomorrow)?|good night|later|talk to you later|ciao|have a (?:nice|good|great) (?:day|one|evening|weekend))$/i
  ],
  [
    "who",
    /^(?:(?:so )?(?:who|what) (?:are|r) you|(?:are|r) you (?:an? )?(?:real |actual )?(?:ai|bot|robot|human|person|machine|script|computer|program|chatbot|llm|language model|real|chatgpt|gpt|gpt-?4o?|chat ?bot|alive|sentient|intelligent|smart|assistant|openai|claude|gemini)\b.*|am i (?:talking|speaking|chatting) (?:to|with) .*|(?:which|what) (?:ai |language |kind of )?(?:model|llm|ai|bot)\b.*|do you use (?:an? )?(?:ai|llm|language model|gpt|chatgpt)\b.*|what'?s your name|what is your name|who (?:made|built|created) you|is this (?:an? )?(?:ai|bot|robot|human|real person|script)\b.*|introduce yourself)$/i
  ],
  [
    "help",
    /^(?:help|help me|\?+|what can (?:you|i) (?:do|say|ask)(?: here| for me| you)*|how (?:does|do) (?:this|it|you|i use (?:this|it|you)) ?(?:work)?|what (?:are your (?:capabilities|features|commands)|do you (?:do|understand|know)|commands (?:are there|do you know|can i use))|how can you help(?: me)?|(?:show|list)(?: me)? (?:the |your |all )?(?:commands|options|capabilities)|instructions|commands|what else can you do|how do i (?:add|complete|delete|remove|rename|list|use|change|update)\b.*|i need (?:some )?help|can you help(?: me)?|what are you able to do)$/i
  ],
  [
    "reopen",
    /^(?:(?:can you |could you |please )?(?:re-?open|un-?complete|un-?check|un-?tick|un-?mark|un-?finish|restore|reactivate|un-?do (?:the )?complet\w+)\b.*|(?:mark|set|make|change|move|put|switch|flag) .{1,200}? (?:as |to |back to |back as |back in |into )*(?:not (?:done|completed?|finished)|undone|un-?done|incomplete|un-?completed|un-?finished|pending|open|active|to-?do)(?: again)?|.{1,200}? (?:is|are|was|were)(?:n't| not) (?:actually |really |yet |completely )*(?:done|finished|completed?)(?: yet| after all)?|i (?:didn't|did not|haven't|have not) (?:actually |really )?(?:finish|complete|do|done|finished|completed) (?!yet).{1,200}|(?:bring|move) .{1,200} back)$/i
  ],
  [
    "undo",
    /^(?:undo|undo (?:that|it|this|the last (?:one|thing|action|change))|take (?:that|it) back|revert(?: that| it)?|that was (?:a mistake|wrong)|oops)$/i
  ]
]

const beyond: ReadonlyArray<readonly [string, RegExp]> = [
  [
    "due dates and deadlines",
    /^(?:set|add|change|give|move|push|postpone|delay|snooze|put|extend|update)\b.{0,80}\b(?:due dates?|deadlines?|due (?:on|by|to|for|tomorrow)|until (?:tomorrow|next|monday|tuesday|wednesday|thursday|friday|saturday|sunday))\b|^(?:when is|what's due|what is due|which tasks are (?:due|overdue)|snooze|postpone|reschedule)\b|\boverdue\b/i
  ],
  [
    "priorities",
    /\bpriorit(?:y|ies|i[sz]e)\b|^(?:star|pin|flag|mark) .{1,80} (?:as )?(?:urgent|important|high|low)$|^(?:which|what) .{0,40}(?:most important|most urgent|important|urgent|first)$/i
  ],
  [
    "tags, categories and sorting",
    /^(?:tag|label|categori[sz]e|sort|group|order|reorder|organi[sz]e|arrange|move .{1,80} to the (?:top|bottom))\b/i
  ],
  ["sharing and sending", /^(?:share|assign|send|email|e-mail|text|export|print|invite|sync|import)\b/i],
  [
    "alarms at a time",
    /^(?:set|start)(?: up)? (?:an? |the |my )?(?:alarm|timer|stopwatch|countdown|recurring|notification)\b|^(?:wake me|notify me|alert me|ping me)\b/i
  ],
  [
    "anything but the todo list",
    /\b(?:weather|forecast|joke|news|stock|poem|story|song|recipe|translate|capital of|president|who won|score|calculate|time is it|date is it|day is it|what time|meaning of life|movie|wikipedia|google|internet|python|javascript|code)\b|^(?:play|sing|call|order|book|buy|turn (?:on|off)) (?=me |us |a cab|an uber|some music)|^\d+ ?[-+*/x] ?\d+\b|^(?:what|who|when|where|why|how) (?:is|are|was|were|did|does|do you think|old|far|tall|big) (?!.*\b(?:task|tasks|todo|todos|list|left|done|pending|item|items|plate|agenda|remaining|finish|finished|accomplished|achieved|completed|open)\b)(?!(?:on|in) my)/i
  ]
]

const setsWhatIsNot =
  /^mark .* (?:urgent|important|priority)$|^add (?:a |an |the )?(?:due date|deadline|priority|alarm|tag|label|sub-?task|attachment|category)\b/i
const startsAsRequest = /^(?:add|remind|create|delete|remove|complete|mark|finish|rename|i |my )\b/i

/** Reads a saying that is a whole clause; undefined where it is none. */
export const readSmallTalk = (text: string): Intent | undefined => {
  const saying = sayings.find(([, pattern]) => pattern.test(text))
  if (saying) return { type: saying[0] }
  if (startsAsRequest.test(text) && !setsWhatIsNot.test(text)) return undefined
  const found = beyond.find(([, pattern]) => pattern.test(text))
  return found && { type: "beyond", what: found[0] }
}
