/**
 * What the contract says of each group and each operation, in one sentence.
 *
 * In one place, so that they read like each other and a list shows them all. What
 * more there is to say of an operation stands with it, as its description; an
 * operation without a sentence here fails a test.
 */
export interface GroupWords {
  readonly about: string
  readonly operations: Readonly<Record<string, string>>
}

/** By the group's name, and by the operation's name in its group. */
export const operationWords: Readonly<Record<string, GroupWords>> = {
  system: {
    about: "Whether the server lives and can work; without a token.",
    operations: {
      health: "Tells that the program answers.",
      ready: "Tells whether the server can work, and if not, why."
    }
  },
  metrics: {
    about: "Figures for whoever watches the server.",
    operations: { scrape: "Tells the figures of all projects together, as Prometheus reads them." }
  },
  projects: {
    about: "Projects, to which everything belongs, and what bounds hold in each.",
    operations: {
      me: "Tells who is asking, and what they may do where.",
      list: "Lists the projects that the caller sees.",
      create: "Makes a project.",
      get: "Reads a project, and what stops its agents.",
      rename: "Gives a project another name.",
      settings: "Reads the bounds of a project.",
      changeSettings: "Changes the bounds of a project."
    }
  },
  members: {
    about: "Who belongs to a project, and with which role.",
    operations: {
      list: "Lists the members of a project.",
      add: "Lets somebody into a project.",
      get: "Reads one member.",
      change: "Gives a member another role.",
      remove: "Ends a membership.",
      invite: "Makes a link that signs one browser in as a member."
    }
  },
  tokens: {
    about: "The tokens of a project's members.",
    operations: {
      list: "Lists tokens; those of all members for an admin, else one's own.",
      create: "Makes a token, and tells its secret this once.",
      revoke: "Ends a token in this project."
    }
  },
  serverTokens: {
    about: "Tokens that reach every project; for the server's admin.",
    operations: {
      list: "Lists the tokens of the server as a whole.",
      create: "Makes a token that reaches every project, and tells its secret this once.",
      revoke: "Ends a token of the server.",
      loginLink: "Makes a link that signs one browser in as the server's admin."
    }
  },
  sessions: {
    about: "The browsers in which the caller is signed in.",
    operations: {
      list: "Lists the caller's sessions.",
      endOthers: "Signs the caller out everywhere but here.",
      end: "Signs the caller out of one browser."
    }
  },
  killSwitch: {
    about:
      "Switches that stop all agents of a project or of the server, deliveries of events and questions to foreign servers with them.",
    operations: {
      ofServer: "Reads whether the agents of the server are stopped.",
      setServer: "Stops all agents of the server, or lets them work again.",
      ofProject: "Reads whether the agents of a project are stopped.",
      setProject: "Stops all agents of a project, or lets them work again."
    }
  },
  objects: {
    about: "The objects of the knowledge graph, with their history.",
    operations: {
      list: "Finds objects.",
      create: "Makes an object.",
      get: "Reads an object.",
      update: "Changes properties of an object.",
      delete: "Deletes an object, or removes it for good.",
      restore: "Brings a deleted object back.",
      history: "Lists the versions of an object.",
      neighbors: "Finds what an object is related to.",
      provenance: "Tells why the properties of an object have their values.",
      purges: "Lists what was removed for good."
    }
  },
  relationships: {
    about: "The relationships between objects, with their history.",
    operations: {
      list: "Finds relationships.",
      create: "Relates two objects.",
      get: "Reads a relationship.",
      update: "Changes properties of a relationship.",
      delete: "Deletes a relationship, or removes it for good.",
      restore: "Brings a deleted relationship back.",
      history: "Lists the versions of a relationship."
    }
  },
  feed: {
    about: "What happens in the graph, as a feed without gaps.",
    operations: {
      events: "Reads committed graph events, a page at a time or as they come.",
      get: "Reads one event of the graph."
    }
  },
  chains: {
    about: "All that descends from one event.",
    operations: {
      list: "Lists the chains in which an agent ran.",
      get: "Reads a chain from its root event on."
    }
  },
  transfer: {
    about: "Files of many objects, into the graph and out of it.",
    operations: {
      import: "Imports a file, line by line.",
      listImports: "Lists imports.",
      getImport: "Reads how far an import has come.",
      export: "Exports the graph as lines."
    }
  },
  dumps: {
    about: "Whole projects, to be carried away and brought back.",
    operations: {
      dump: "Dumps a whole project as lines.",
      restoreDump: "Makes a new project of a dump."
    }
  },
  explanations: {
    about: "Why an event woke an agent, or did not.",
    operations: {
      explain: "Tells why an event woke one agent, or did not.",
      list: "Tells of each agent whether an event woke it."
    }
  },
  agents: {
    about: "Agents: their definitions, and starting them by hand.",
    operations: {
      list: "Lists agents.",
      health: "Lists agents with how they fare.",
      fires: "Tells when a schedule would fire.",
      create: "Defines an agent.",
      get: "Reads an agent.",
      update: "Changes an agent, as a new version.",
      delete: "Deletes an agent.",
      schedule: "Tells when an agent's schedule fires next.",
      usage: "Tells day by day what an agent's model requests used.",
      modelUsage: "Returns what an agent's model requests used, by model.",
      trigger: "Runs an agent now."
    }
  },
  autonomy: {
    about: "What an agent has earned by what people decided.",
    operations: {
      get: "Reads what a version of an agent has earned.",
      reverse: "Takes a promotion back."
    }
  },
  processing: {
    about: "Which events an agent has handled, which it has not, and trying again.",
    operations: {
      queues: "Lists the agents that react, each with its queue.",
      log: "Lists an agent's processing entries.",
      retry: "Tries an entry again that failed or was abandoned.",
      deadLetters: "Lists entries that nobody tries any more.",
      redrive: "Tries dead letters again.",
      pendingEvents: "Lists objects that an agent has not handled.",
      batchTrigger: "Runs an agent for objects or events that it has not handled."
    }
  },
  definitions: {
    about: "Agents as files, and their versions.",
    operations: {
      apply: "Makes agents what these definitions say, all or none.",
      versions: "Lists the versions of an agent.",
      version: "Reads one version of an agent.",
      diff: "Tells what a version of an agent changed.",
      restore: "Makes an old version of an agent the present one."
    }
  },
  mcpServers: {
    about: "MCP servers whose tools agents of a project may be given.",
    operations: {
      create: "Adds an MCP server, and pins what it lists.",
      list: "Lists a project's MCP servers.",
      get: "Reads an MCP server with what it lists.",
      update: "Changes an MCP server.",
      refresh: "Looks at an MCP server again, and pins what it lists now.",
      signIn: "Answers a link at which somebody signs in to an MCP server.",
      signOut: "Signs out of an MCP server.",
      remove: "Removes an MCP server."
    }
  },
  runs: {
    about: "What agents do: each trigger has one run.",
    operations: {
      list: "Lists runs.",
      get: "Reads a run.",
      events: "Reads a run's log, a page at a time or as it is written.",
      toolCalls: "Lists the tool calls of a run.",
      replay: "Compares a run's log with what would be written again.",
      cancel: "Cancels a run.",
      resume: "Lets a run go on that a limit has stopped.",
      answer: "Answers what a run has asked."
    }
  },
  models: {
    about: "The models that agents may ask.",
    operations: { get: "Tells which models can be used, and what they cost." }
  },
  runRecords: {
    about: "What a run did, step by step, and what models were asked.",
    operations: {
      steps: "Lists the steps of a run.",
      objects: "Tells what a run read, wrote and suggests.",
      modelCalls: "Lists every try of every model request of a run.",
      openRequest: "Reads the request to a model that is under way, or was when the run was ended.",
      modelCall: "Reads one try with its exact request and answer."
    }
  },
  contexts: {
    about: "Logs in which agents work and people speak with them.",
    operations: {
      list: "Lists contexts.",
      create: "Begins a context.",
      get: "Reads a context.",
      state: "Reads the state that a context's log folds to.",
      replay: "Compares a context's log with what would be written again.",
      fork: "Begins a context that shares another's log up to an event.",
      interrupt: "Ends the open turn of a context.",
      addEvent: "Adds an event to a context.",
      events: "Reads a context's log, a page at a time or as it is written."
    }
  },
  chat: {
    about: "Speaking with an agent.",
    operations: { send: "Says something to an agent, and tells what it answers." }
  },
  comparisons: {
    about: "The same message, answered by several models.",
    operations: {
      compare: "Asks variants of a context the same.",
      comparison: "Reads what the variants of a comparison answered."
    }
  },
  conversations: {
    about: "The caller's conversations with agents.",
    operations: {
      list: "Lists the caller's conversations.",
      begin: "Begins a conversation in which nothing is said yet.",
      get: "Reads a conversation.",
      rename: "Gives a conversation another title.",
      delete: "Takes a conversation from every list.",
      messages: "Lists what was said in a conversation.",
      export: "Reads a conversation with all that was said."
    }
  },
  backtests: {
    about: "Trying an agent on events that have happened; nobody is reached.",
    operations: {
      begin: "Begins a backtest of an agent.",
      list: "Lists an agent's backtests.",
      get: "Reads a backtest with its report.",
      results: "Tells event by event what a backtest suggests.",
      cancel: "Ends a backtest."
    }
  },
  attachments: {
    about: "Files that agents are shown.",
    operations: {
      attach: "Keeps a file, and tells the digest that names it.",
      download: "Reads a file."
    }
  },
  tasks: {
    about: "What waits for people: todos, questions, and what agents suggest.",
    operations: {
      list: "Lists tasks.",
      add: "Adds a todo of the caller's.",
      get: "Reads a task.",
      change: "Changes a todo, or who decides a task and until when; editors may.",
      complete: "Marks a todo as done.",
      remove: "Deletes a todo.",
      revisions: "Lists what a suggestion said before it was refined.",
      approve:
        "Approves a suggestion, and makes its change; editors may, and reviewers an undo or a promotion.",
      rerun: "Lets the agent suggest again what is outdated.",
      decide: "Decides many tasks, one after another.",
      reject: "Rejects a suggestion; editors may.",
      rejectAll: "Rejects all suggestions of an agent that wait."
    }
  },
  health: {
    about: "How a project fares.",
    operations: { get: "Says how a project fares, what that rests on, and what to do first." }
  },
  denials: {
    about: "What agents and people were refused for want of a right.",
    operations: { list: "Lists what was denied." }
  },
  toolCalls: {
    about: "What people's own programs did by tools.",
    operations: { list: "Lists the tool calls of somebody's programs." }
  },
  undos: {
    about: "Taking back what agents did, by a plan that a person approves.",
    operations: {
      undoRun: "Plans to take back what a run changed.",
      undoAgent: "Plans to take back what a version of an agent changed.",
      undoChain: "Plans to take back what agents changed in a chain.",
      items: "Lists what becomes of each object and relationship of a plan."
    }
  },
  webhooks: {
    about: "Addresses by which other programs wake an agent.",
    operations: {
      create: "Opens a webhook for an agent, and tells its token this once.",
      list: "Lists an agent's webhooks.",
      rotate: "Gives a webhook another token.",
      revoke: "Ends a webhook."
    }
  },
  deliveries: {
    about: "The door at which webhooks are called.",
    operations: { deliver: "Takes a signed delivery, and wakes the agent." }
  },
  verification: {
    about: "Whether what is kept is what the logs say.",
    operations: { verify: "Folds all logs of a project anew, and compares." }
  },
  projectCompletions: {
    about: "OpenAI's responses and chat completions under the address of a project: each agent is a model.",
    operations: {
      complete: "Says something to an agent, in OpenAI's form.",
      respond: "Says something to an agent and returns its response, in OpenAI's form.",
      response: "Reads a response, as far as it is.",
      deleteResponse: "Makes the id of a response name nothing.",
      cancelResponse: "Cancels the run of a response in progress.",
      models: "Lists the agents that can be spoken to, as models.",
      model: "Reads one agent as a model."
    }
  },
  completions: {
    about: "The same at the root, for a token that reaches one project.",
    operations: {
      complete: "Says something to an agent of the token's project, in OpenAI's form.",
      respond:
        "Says something to an agent of the token's project and returns its response, in OpenAI's form.",
      response: "Reads a response in the token's project, as far as it is.",
      deleteResponse: "Makes the id of a response in the token's project name nothing.",
      cancelResponse: "Cancels the run of a response in progress in the token's project.",
      models: "Lists the agents of the token's project, as models.",
      model: "Reads one agent of the token's project as a model."
    }
  }
}
