import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { expect, it } from 'vitest';
import { NOW, requestOf } from '../policy.fixture.ts';
import type { VerifyWebhook } from '../policy.ts';
import type { HeaderPair, PolicyDigests } from '../policy-step.ts';
import { POLICY_WEBHOOK_MAX_BYTES } from '../schema/policy-webhook.ts';
import { utf8Bytes } from '../text/bytes.ts';
import { POLICY_HASHED_MAX_BYTES } from './policy-run.ts';
import { webhookCheck } from './webhook-signatures.ts';

const DIGESTS: PolicyDigests = {
  sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
  hmac: (algorithm, key, parts) => {
    const hmac = createHmac(algorithm, key);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};

const SECS = Math.floor(NOW / 1000);
const BODY = '{"id":1,"text":"größer"}';

const isGood = (rule: Partial<VerifyWebhook>, headers: readonly HeaderPair[], body = BODY, nowMs = NOW): boolean => {
  const whole: VerifyWebhook = { provider: 'hmac', secrets: ['s3cret'], max_bytes: 1000, ...rule };
  const room = { hashLeft: POLICY_HASHED_MAX_BYTES };
  const check = webhookCheck(whole, requestOf({ headers }).headers, DIGESTS, nowMs, room);
  return typeof check === 'function' ? check(utf8Bytes(body)) : check === 'good';
};

const hmac = (key: string | Buffer, text: string, encoding: 'hex' | 'base64', algorithm = 'sha256'): string =>
  createHmac(algorithm, key).update(text).digest(encoding);

/** Webhook headers of every provider, signed with the given secret at the given time. */
const SIGNED: Readonly<Record<VerifyWebhook['provider'], (secret: string, secs: number) => HeaderPair[]>> = {
  standard: (secret, secs) => [
    ['webhook-id', 'msg_1'],
    ['webhook-timestamp', `${secs}`],
    [
      'webhook-signature',
      `v1,${hmac(Buffer.from(secret.replace('whsec_', ''), 'base64'), `msg_1.${secs}.${BODY}`, 'base64')}`,
    ],
  ],
  stripe: (secret, secs) => [['Stripe-Signature', `v0=6ffb,t=${secs},v1=${hmac(secret, `${secs}.${BODY}`, 'hex')}`]],
  github: (secret) => [['X-Hub-Signature-256', `sha256=${hmac(secret, BODY, 'hex')}`]],
  slack: (secret, secs) => [
    ['X-Slack-Request-Timestamp', `${secs}`],
    ['X-Slack-Signature', `v0=${hmac(secret, `v0:${secs}:${BODY}`, 'hex')}`],
  ],
  shopify: (secret) => [['X-Shopify-Hmac-Sha256', hmac(secret, BODY, 'base64')]],
  gitlab: (secret) => [['X-Gitlab-Token', secret]],
  hmac: (secret) => [['X-Signature', `v=${hmac(secret, BODY, 'base64', 'sha512')}`]],
};

const OWN = { header: 'x-signature', algorithm: 'sha512', encoding: 'base64', prefix: 'v=' } as const;
const OLD = 'whsec_b2xkLW9sZC1vbGQ=';
const NEW = 'whsec_bmV3LW5ldy1uZXc=';

it.each(Object.keys(SIGNED) as VerifyWebhook['provider'][])(
  '%s: a webhook signed by the sender passes, any other webhook is refused',
  (provider) => {
    const rule = { provider, ...(provider === 'hmac' ? OWN : {}) };
    const signed = SIGNED[provider];
    expect(isGood({ ...rule, secrets: [NEW] }, signed(NEW, SECS))).toBe(true);
    expect(isGood({ ...rule, secrets: [NEW, OLD] }, signed(OLD, SECS))).toBe(true);
    expect(isGood({ ...rule, secrets: [NEW] }, signed(OLD, SECS))).toBe(false);
    expect(isGood({ ...rule, secrets: [NEW] }, [])).toBe(false);
    if (provider !== 'gitlab') expect(isGood({ ...rule, secrets: [NEW] }, signed(NEW, SECS), `${BODY} `)).toBe(false);
    for (const [name] of signed(NEW, SECS)) {
      const cut = signed(NEW, SECS).map(([given, value]): HeaderPair => [given, given === name ? `${value}x` : value]);
      expect(isGood({ ...rule, secrets: [NEW] }, cut), name).toBe(false);
    }
  },
);

it.each(['standard', 'stripe', 'slack'] as const)(
  '%s: a timestamp more than 300 s in the past or future is refused',
  (provider) => {
    for (const [secs, wanted] of [
      [-301, false],
      [-300, true],
      [300, true],
      [301, false],
    ] as const) {
      expect(isGood({ provider, secrets: [NEW] }, SIGNED[provider](NEW, SECS + secs)), `${secs}`).toBe(wanted);
    }
  },
);

it('a timestamp outside of the signature is ignored', () => {
  const [signature] = SIGNED.stripe(NEW, SECS - 5000);
  const moved: HeaderPair = ['stripe-signature', `t=${SECS},${signature?.[1] ?? ''}`];
  expect(isGood({ provider: 'stripe', secrets: [NEW] }, [moved])).toBe(false);
});

it('one valid signature of several is enough, since senders sign twice while a secret changes', () => {
  const [id, time, good] = SIGNED.standard(NEW, SECS) as [HeaderPair, HeaderPair, HeaderPair];
  const both: HeaderPair = ['webhook-signature', `v1a,xx v1,${hmac('x', 'y', 'base64')} ${good[1]}`];
  expect(isGood({ provider: 'standard', secrets: [NEW] }, [id, time, both])).toBe(true);
});

it('an invalid signature header is refused before the body is held', () => {
  const rule: VerifyWebhook = { provider: 'github', secrets: ['s'], max_bytes: 10 };
  for (const value of ['', 'sha256=', 'sha1=00', 'sha256=zz']) {
    const { headers } = requestOf({ headers: [['x-hub-signature-256', value]] });
    expect(webhookCheck(rule, headers, DIGESTS, NOW, { hashLeft: 0 })).toBeNull();
  }
});

it('a GitLab token may have non-ASCII letters, compared byte by byte', () => {
  const sent: HeaderPair = ['x-gitlab-token', Buffer.from('größer als zwanzig').toString('latin1')];
  expect(isGood({ provider: 'gitlab', secrets: ['größer als zwanzig'] }, [sent])).toBe(true);
});

it('an empty GitLab token is refused', () => {
  expect(isGood({ provider: 'gitlab', secrets: [''] }, [['x-gitlab-token', '']])).toBe(false);
});

it('signatures from the Stripe and Standard Webhooks libraries are valid', () => {
  const stripe = new Stripe('sk_test_0').webhooks.generateTestHeaderString({
    payload: BODY,
    secret: NEW,
    timestamp: SECS,
  });
  expect(isGood({ provider: 'stripe', secrets: [OLD, NEW] }, [['stripe-signature', stripe]])).toBe(true);
  expect(isGood({ provider: 'stripe', secrets: [OLD] }, [['stripe-signature', stripe]])).toBe(false);
  const standard = new Webhook(NEW).sign('msg_1', new Date(SECS * 1000), BODY);
  const [id, time] = SIGNED.standard(NEW, SECS) as [HeaderPair, HeaderPair];
  expect(isGood({ provider: 'standard', secrets: [OLD, NEW] }, [id, time, ['webhook-signature', standard]])).toBe(true);
  expect(isGood({ provider: 'standard', secrets: [OLD] }, [id, time, ['webhook-signature', standard]])).toBe(false);
  const svix: HeaderPair[] = [
    ['svix-id', id[1]],
    ['svix-timestamp', time[1]],
    ['svix-signature', standard],
  ];
  expect(isGood({ provider: 'standard', secrets: [NEW] }, svix)).toBe(true);
  expect(isGood({ provider: 'standard', secrets: [OLD] }, svix)).toBe(false);
  // Headers of the two naming schemes cannot be mixed: a Svix signature does not cover webhook-id.
  expect(isGood({ provider: 'standard', secrets: [NEW] }, [id, ...svix.slice(1)])).toBe(false);
});

it('a large body is hashed with a bounded number of secrets across all rules, and an untried secret counts as invalid', () => {
  const body = new Uint8Array(POLICY_WEBHOOK_MAX_BYTES);
  const secrets = Array.from({ length: 10 }, (_, at) => `s${at}`);
  const rule: VerifyWebhook = { provider: 'github', secrets, max_bytes: body.length };
  const room = { hashLeft: POLICY_HASHED_MAX_BYTES };
  let hashed = 0;
  const digests: PolicyDigests = {
    ...DIGESTS,
    hmac: (algorithm, key, parts) => {
      hashed += body.length;
      return DIGESTS.hmac(algorithm, key, parts);
    },
  };
  const isGoodBy = (secret: string): boolean => {
    const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
    const headers = requestOf({ headers: [['X-Hub-Signature-256', signature]] }).headers;
    const check = webhookCheck(rule, headers, digests, NOW, room);
    return typeof check === 'function' && check(body);
  };
  // The secret in use is listed first, so it is tried before the hash budget is used up.
  expect([isGoodBy('s0'), isGoodBy('s9'), isGoodBy('s0')]).toEqual([true, false, false]);
  expect(hashed).toBeLessThanOrEqual(POLICY_HASHED_MAX_BYTES);
});
