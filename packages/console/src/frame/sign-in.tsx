/**
 * The page for a browser without a session: open the printed link or one that an admin made, or paste a token.
 *
 * The token goes to the server once and is kept nowhere: the server answers
 * with a cookie that scripts cannot read.
 */
import type { Principal } from "@tropism/api/authorization"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { type ReactNode, useId, useState } from "react"
import { Button } from "../parts/button.tsx"
import { Command } from "../parts/command.tsx"
import { Mark } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import { tokenFault } from "./token-fault.ts"
import { failureCode, failureSentence, isUnauthorized, Problem } from "../server/problem.ts"
import { readPrincipal, signIn } from "../server/request.ts"
import { signedIn } from "../server/whose.ts"
import { useSignOut } from "./use-sign-out.ts"

interface SignInProps {
  /** A secret that is shown once is open where this comes up instead. */
  readonly hadOpenSecret: boolean
}

export const SignIn = ({ hadOpenSecret }: SignInProps): ReactNode => (
  <main data-testid="sign-in" className="mx-auto grid min-h-dvh max-w-sm content-center gap-8 px-5 py-12">
    <header>
      <Mark className="size-10" />
      <h1 className="mt-5 text-2xl font-semibold tracking-tight">Sign in to Tropism</h1>
      <p className="mt-2 text-sm text-pretty text-ink-soft">
        Open the login link that the server prints at startup, or one from a project admin. If the server runs
        on this machine, this prints a new link:
      </p>
    </header>
    <Command text="npx tropism link" />
    <LostSecret hadOpenSecret={hadOpenSecret} />
    <TokenForm />
  </main>
)

/** **Details** By now nothing is open any more: it stands here for as long as nobody signs in. */
const LostSecret = ({ hadOpenSecret }: SignInProps): ReactNode => {
  const [isLost] = useState(hadOpenSecret)
  return (
    isLost && (
      <p
        role="alert"
        className="rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
      >
        Your session ended while a secret was shown. If you did not copy it, sign in, create a new one and
        revoke the old one.
      </p>
    )
  )
}

/** Who is signed in, and the way out. */
export const SignedIn = ({ principal }: { readonly principal: Principal }): ReactNode => {
  const { signOut, isPending, error } = useSignOut()
  return (
    <p
      data-user={principal.userId}
      className="mt-6 flex flex-wrap items-baseline gap-x-2 px-1 text-xs text-ink-faint"
    >
      <span className="min-w-0">
        Signed in as <Visible text={principal.userId} />
      </span>
      <button
        type="button"
        aria-disabled={isPending}
        onClick={isPending ? undefined : signOut}
        className="rounded font-medium text-ink-soft underline-offset-2 hover:underline"
      >
        Sign out
      </button>
      {error && <span role="status">{failureSentence(error)}</span>}
    </p>
  )
}

const TokenForm = (): ReactNode => {
  const [token, setToken] = useState("")
  const fieldId = useId()
  const errorId = useId()
  const queryClient = useQueryClient()
  const attempt = useMutation({
    mutationFn: (token: string) => Effect.runPromise(signIn(token).pipe(Effect.andThen(readPrincipal))),
    onSuccess: () => signedIn(queryClient)
  })
  const [fault, setFault] = useState<string>()
  const refusal = fault ?? (attempt.error ? signInSentence(attempt.error) : undefined)
  return (
    <form
      className="border-t border-line pt-7"
      onSubmit={(event) => {
        event.preventDefault()
        const given = token.trim()
        const found = tokenFault(given)
        setFault(found)
        if (given !== "" && found === undefined) attempt.mutate(given)
      }}
    >
      <label htmlFor={fieldId} className="text-sm font-medium">
        Or paste a token
      </label>
      <div className="mt-1.5 flex gap-2">
        <input
          id={fieldId}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-invalid={refusal !== undefined}
          aria-describedby={errorId}
          className="h-9 min-w-0 grow rounded-lg border border-line-strong bg-surface px-3 font-mono text-sm"
        />
        <Button type="submit" weight="primary" disabled={attempt.isPending}>
          {attempt.isPending ? "Signing in…" : "Sign in"}
        </Button>
      </div>
      <p id={errorId} role="status" className="mt-2 min-h-5 text-xs text-ink-faint">
        {refusal !== undefined ? (
          <span
            data-failure={fault === undefined ? failureCode(attempt.error) : "no-token"}
            className="text-removed-ink"
          >
            {refusal}
          </span>
        ) : (
          <>
            The server's own token is in the file <code className="font-mono">token</code> of its data folder.
          </>
        )}
      </p>
    </form>
  )
}

const signInSentence = (error: unknown): string =>
  isUnauthorized(error) || (error instanceof Problem && error.status < 500)
    ? "This token is invalid or has expired."
    : failureSentence(error)
