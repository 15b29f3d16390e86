/**
 * The Containerfile and compose.yaml, as far as they can be judged where no container can be run.
 *
 * What they copy is what the package is called, what they start is there, every
 * setting is one that the server reads, and the health check is run for real.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { httpLimits } from "../packages/server/src/limits.ts"

const read = (file: string): string => readFileSync(join(import.meta.dirname, "..", file), "utf8")

const manifest = JSON.parse(read("packages/cli/package.json"))

/** The instructions of the file, each with its words, lines that go on joined. */
const instructions = read("Containerfile")
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n\s*/g, "")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => ({ name: line.split(" ", 1)[0] ?? "", words: line.slice(line.indexOf(" ") + 1) }))

const all = (name: string) => instructions.filter((one) => one.name === name).map(({ words }) => words)

const settings = (names: ReadonlyArray<string>) => {
  const table = read("docs/configuration.md").split(/^## /m)[1] ?? ""
  return names.filter((name) => !table.includes(`\`${name}\``))
}

const isPinned = (image: string) => /:\d/.test(image)

describe("the Containerfile", () => {
  it("copies nothing but the package, by the name that npm gives it", () => {
    const [source = ""] = all("COPY").flatMap((words) => words.split(" ").slice(0, -1))
    expect(all("COPY")).toHaveLength(1)
    const tarball = `build/image/${manifest.name}-${manifest.version}.tgz`
    expect(source).toBe(tarball)
    const ignored = read(".dockerignore").trim().split("\n")
    expect(ignored[0]).toBe("*")
    expect(ignored.slice(1).some((line) => new Bun.Glob(line.slice(1)).match(tarball))).toBe(true)
  })

  it("starts the package's command as an ordinary user, from an image that is pinned", () => {
    expect(all("FROM").every(isPinned)).toBe(true)
    expect(all("USER").at(-1)).toBe("tropism")
    expect(JSON.parse(all("ENTRYPOINT")[0] ?? "[]")).toEqual(Object.keys(manifest.bin))
    expect(read("packages/cli/src/commands/start.ts")).toContain(
      `Command.make(\n  "${JSON.parse(all("CMD")[0] ?? '[""]')[0]}"`
    )
    expect(all("VOLUME")).toEqual(["/data"])
  })

  it("has no secret in it, and sets what the server reads", () => {
    const names = all("ENV").flatMap((words) => words.split(" ").map((word) => word.split("=")[0] ?? ""))
    expect(settings(names)).toEqual([])
    expect(all("ARG")).toEqual([])
    expect(names.filter((name) => /TOKEN|KEY|SECRET|PASSWORD|DATABASE/.test(name))).toEqual([])
  })

  it("is healthy exactly while the server is ready", async () => {
    const words = all("HEALTHCHECK")[0] ?? ""
    const [, ...args] = JSON.parse(words.slice(words.indexOf("CMD ") + 4))
    let status = 200
    const server = Bun.serve({
      port: 0,
      fetch: ({ url }) => new Response("", { status: new URL(url).pathname === "/ready" ? status : 404 })
    })
    const check = () =>
      new Promise<number | null>((resolve) => {
        const child = spawn(process.execPath, args, { env: { ...process.env, PORT: String(server.port) } })
        child.on("exit", resolve)
      })
    expect(await check()).toBe(0)
    status = 503
    expect(await check()).toBe(1)
    await server.stop(true)
    expect(await check()).toBe(1)
  })
})

describe("compose.yaml", () => {
  const { services, volumes } = parse(read("compose.yaml"))

  it("builds the server from the Containerfile and waits for its database", () => {
    expect(read(services.tropism.build.dockerfile)).not.toBe("")
    expect(services.tropism.image).toBe(`${manifest.name}:${manifest.version}`)
    expect(services.tropism.depends_on.database.condition).toBe("service_healthy")
    expect(isPinned(services.database.image)).toBe(true)
    const mounts: ReadonlyArray<string> = [...services.tropism.volumes, ...services.database.volumes]
    expect(mounts.map((mount) => mount.split(":")[0]).toSorted()).toEqual(Object.keys(volumes).toSorted())
    expect(mounts).toContain(`data:${all("VOLUME")[0]}`)
  })

  it("hands on settings that the server reads, and says of each secret that it must be given", () => {
    const environment: Readonly<Record<string, string>> = services.tropism.environment
    expect(settings(Object.keys(environment))).toEqual([])
    for (const name of ["TROPISM_TOKEN", "TROPISM_ENCRYPTION_KEY"]) {
      expect(environment[name]).toMatch(new RegExp(`^\\$\\{${name}:\\?`))
    }
    expect(services.database.environment.POSTGRES_PASSWORD).toMatch(/^\$\{POSTGRES_PASSWORD:\?/)
    expect(services.tropism.ports).toEqual(["127.0.0.1:4400:4400"])
  })
})

describe("compose.cluster.yaml", () => {
  const { services, volumes } = parse(read("compose.cluster.yaml"), { merge: true })
  const servers = Object.entries<typeof services>(services).filter(([name]) => name.startsWith("server-"))

  it("starts three servers that differ in nothing but their own address", () => {
    expect(servers.map(([name]) => name)).toEqual(["server-1", "server-2", "server-3"])
    for (const [name, { command, environment, image, ports }] of servers) {
      expect(command).toEqual(["start", "--cluster"])
      expect(image).toBe(`${manifest.name}:${manifest.version}`)
      expect(ports).toBeUndefined()
      expect(settings(Object.keys(environment))).toEqual([])
      expect(environment).toEqual({
        ...servers[0]?.[1].environment,
        TROPISM_CLUSTER_ADDRESS: `${name}:4500`
      })
      for (const secret of ["TROPISM_TOKEN", "TROPISM_ENCRYPTION_KEY"])
        expect(environment[secret]).toMatch(new RegExp(`^\\$\\{${secret}:\\?`))
      const { TROPISM_CLUSTER_ADDRESS: _, TROPISM_LOG: log, ...shared } = environment
      const alone = parse(read("compose.yaml")).services.tropism.environment
      expect(Object.keys(shared)).toEqual(Object.keys(alone))
      expect(log).toBe("json")
    }
  })

  it("builds their image once, and takes none of that name from elsewhere", () => {
    const builders = servers.filter(([, { build }]) => build !== undefined)
    expect(builders.map(([name, { build }]) => [name, build.dockerfile])).toEqual([
      ["server-1", "Containerfile"]
    ])
    expect(servers.map(([, { pull_policy: policy }]) => policy)).toEqual(["never", "never", "never"])
  })

  it("has a database with room for the connections of all, and a balancer that knows each of them", () => {
    expect(isPinned(services.database.image) && isPinned(services.balancer.image)).toBe(true)
    expect(Object.keys(volumes)).toEqual(["database"])
    const most = Number(/max_connections=(\d+)/.exec(services.database.command.join(" "))?.[1])
    expect(most).toBeGreaterThanOrEqual(servers.length * 24 + 20)
    const [file = "", place] = services.balancer.volumes[0].split(":")
    expect(place).toBe("/etc/caddy/Caddyfile")
    const caddy = read(file)
    expect(/reverse_proxy (.*) \{/.exec(caddy)?.[1]?.split(" ")).toEqual(
      servers.map(([name]) => `${name}:4400`)
    )
    expect(caddy).toContain("health_uri /ready\n")
    expect(caddy).toContain("flush_interval -1\n")
    expect(caddy).toContain("trusted_proxies private_ranges\n")
    // A request that meets a server's close may be lost, and is done by nobody again.
    const keptMs = Number(/keepalive (\d+)s\n/.exec(caddy)?.[1]) * 1_000
    expect(keptMs).toBeLessThan(httpLimits.keepAliveMs)
    expect(services.balancer.ports).toEqual(["127.0.0.1:4400:4400"])
    expect(services.balancer.depends_on).toEqual(servers.map(([name]) => name))
  })
})
