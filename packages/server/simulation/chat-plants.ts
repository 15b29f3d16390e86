/**
 * Faults of chats: a message that is lost, kept twice or not answered, an answer that was never given.
 */
import type { Plant } from "./plant.ts"

const aMessage = `select * from kb.context_events
  where project_id = $1 and context_name like 'chat-%' and type = 'UserMessageEvent' order by context_name, number limit 1`

export const chatPlants: ReadonlyArray<Plant> = [
  {
    checker: "chatsSaidOnce",
    fault: "a message that was acknowledged is lost",
    sql: [],
    testimony: ({ acknowledged }) => ({
      chatted: [...acknowledged.chatted, { key: "lost", content: "hear me", context: "chat-lost", number: 2 }]
    })
  },
  {
    checker: "chatsSaidOnce",
    fault: "a message that came twice was kept twice",
    sql: [
      `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
        select project_id, context_name, 10000, type, payload, parent_event_id, triggers_agent_turn, created_at from (${aMessage}) message`
    ]
  },
  {
    checker: "chatsAnsweredOnce",
    fault: "a message has no answer",
    sql: [
      `delete from kb.context_events where project_id = $1 and context_name like 'chat-%' and type like 'AgentTurn%'`
    ]
  },
  {
    checker: "chatsAnsweredOnce",
    fault: "a message was answered again",
    sql: [
      `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
        select project_id, context_name, 10000 + n, 'AgentTurnCompletedEvent', '{"turnNumber": 1, "durationMs": 1}'::jsonb, null, false, created_at
        from (${aMessage}) message, generate_series(1, 10) n`
    ]
  },
  {
    checker: "chatsToldTrue",
    fault: "somebody was told what no agent has said",
    sql: [],
    testimony: ({ acknowledged }) => ({
      answered: [...acknowledged.answered, { context: "chat-lost", number: 2, response: "Never said" }]
    })
  }
]
