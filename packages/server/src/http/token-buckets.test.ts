/**
 * A bucket fills steadily, and only so many are remembered.
 */
import { assert, describe, it } from "@effect/vitest"
import { quotaHeaders, TokenBuckets } from "./rate-limits.ts"

const policy = { name: "token", quota: 10, windowSeconds: 2 }

const takeMany = (buckets: TokenBuckets, count: number, nowMs: number) =>
  Array.from({ length: count }, () => buckets.take("a", nowMs).retryAfterSeconds === 0)

describe("A caller's bucket", () => {
  it("gives what it holds at once and then what comes in, and is never fuller than full", () => {
    const buckets = new TokenBuckets(policy, 100)
    assert.deepStrictEqual(takeMany(buckets, 12, 0), [...Array(10).fill(true), false, false])
    assert.deepStrictEqual(takeMany(buckets, 3, 399), [true, false, false])
    assert.deepStrictEqual(takeMany(buckets, 11, 1_000_000), [...Array(10).fill(true), false])
    // A clock that is set back takes nothing away and gives nothing.
    assert.deepStrictEqual(takeMany(buckets, 1, 0), [false])
  })

  it("tells what is left and when there is more", () => {
    const buckets = new TokenBuckets(policy, 100)
    assert.deepStrictEqual(quotaHeaders(buckets.take("a", 0)), {
      "ratelimit-policy": '"token";q=10;w=2',
      ratelimit: '"token";r=9;t=1'
    })
    takeMany(buckets, 9, 0)
    assert.deepStrictEqual(quotaHeaders(buckets.take("a", 0)), {
      "ratelimit-policy": '"token";q=10;w=2',
      ratelimit: '"token";r=0;t=2',
      "retry-after": "1"
    })
  })

  it("goes into debt by what is charged, and no further than one window", () => {
    const buckets = new TokenBuckets(policy, 100)
    buckets.charge("a", 15, 0)
    assert.strictEqual(buckets.take("a", 0).retryAfterSeconds, 2)
    for (let times = 0; times < 50; times++) buckets.charge("a", 15, 0)
    assert.strictEqual(buckets.take("a", 0).retryAfterSeconds, 3)
    assert.deepStrictEqual(takeMany(buckets, 1, 2_200), [true])
  })

  it("is forgotten when too many others have asked since, and who asks again is not", () => {
    const buckets = new TokenBuckets(policy, 4)
    takeMany(buckets, 10, 0)
    for (const key of ["b", "c", "a", "d", "a", "e", "f", "a", "g"]) buckets.take(key, 0)
    assert.deepStrictEqual(takeMany(buckets, 1, 0), [false])
    for (let number = 0; number < 10_000; number++) buckets.take(`guess ${number}`, 0)
    assert.isAtMost(buckets.size, 4)
  })
})
