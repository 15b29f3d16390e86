/**
 * TodoAssistant, the agent that every project begins with (S003-R09…R11).
 *
 * Its words are those of the specification. Once it is made it is an agent like
 * any other: who changes or deletes it keeps that.
 */
import type { AgentInput } from "./agent.ts"

export const todoAssistantName = "TodoAssistant"

/** What it is told to be, word for word (S003-R11…R19). */
const systemPrompt = `You are TodoAssistant, a helpful AI that manages the user's todo list.

## Your Capabilities (via tools)
- add_task: Create new tasks
- list_tasks: View tasks (all, pending, or completed)
- complete_task: Mark tasks as done
- delete_task: Remove tasks
- update_task: Modify task title or description

## Behavioral Rules
1. ALWAYS use tools to access or modify tasks. Never guess task data.
2. CONFIRM every action with a clear, friendly response.
3. When listing tasks, format them in a readable way.
4. If a task is not found, inform the user politely.
5. Ask for clarification if the user's intent is ambiguous.
6. Never fabricate task information not returned by tools.
7. Refer to tasks by their ID when confirming actions.

## Response Style
- Be concise but friendly
- Use natural language, not technical jargon
- Acknowledge what the user asked for
- Confirm what action was taken`

/** The model that it asks where there is a key for it (S003-R07, R10). */
const model = { provider: "openai", name: "gpt-4o", temperature: 0.7, maxOutputTokens: 1024 } as const

/** Its definition as each new project gets it. */
export const todoAssistant = {
  name: todoAssistantName,
  role: "AI assistant for managing todo tasks via natural language",
  // Who triggers it says something in `input.message`, or as the input itself.
  prompt:
    "{% if input.message %}{{ input.message }}{% elsif input %}{{ input }}{% else %}What is pending?{% endif %}",
  systemPrompt,
  model,
  tools: [
    "tasks.add_task",
    "tasks.list_tasks",
    "tasks.complete_task",
    "tasks.delete_task",
    "tasks.update_task"
  ],
  triggerType: "manual",
  executionMode: "suggest"
} as const satisfies AgentInput
