// Whether a webhook is its sender's: the signature of each provider, over the bytes as they came, by any of the secrets. Compared in constant time.

import { fieldValueOf, type HeaderField } from '@tunnel/http1';
import type { VerifyWebhook } from '../policy.ts';
import type { PolicyDigests } from '../policy-step.ts';
import { base64Bytes, hexBytes, textOfBytes, utf8Bytes } from '../text/bytes.ts';

/** how far the time that a webhook’s sender signed may be from ours, either way */
const POLICY_WEBHOOK_SKEW_SECS = 300;

/** What the head says, before a byte of the body is held. */
interface Claim {
  readonly algorithm: 'sha1' | 'sha256' | 'sha512';
  /** Signed in front of the body. */
  readonly before: string;
  /** Any of them suffices. */
  readonly signatures: readonly Uint8Array[];
}

export type WebhookCheck = (body: Uint8Array) => boolean;

/** What one request may cost: all rules and secrets together. */
export interface HashRoom {
  hashLeft: number;
}

/**
 * null: the head alone shows that it is refused, as there is no signature or its time is long past; nothing need be held.
 * 'good': the head alone suffices (GitLab sends its secret, and signs nothing).
 */
export const webhookCheck = (
  rule: VerifyWebhook,
  headers: readonly HeaderField[],
  digests: PolicyDigests,
  nowMs: number,
  room: HashRoom,
): WebhookCheck | 'good' | null => {
  if (rule.provider === 'gitlab') return isGitlabToken(rule, headers, digests) ? 'good' : null;
  const claim = claimOf(rule, headers, nowMs);
  if (claim === null || claim.signatures.length === 0) return null;
  const before = utf8Bytes(claim.before);
  return (body) => {
    let isGood = false;
    for (const secret of rule.secrets) {
      const key = keyOf(rule, secret);
      if (key === null) continue;
      // It is done in one turn, in which all others wait. What is not tried is not good.
      room.hashLeft -= body.length;
      if (room.hashLeft < 0) break;
      const wanted = digests.hmac(claim.algorithm, key, [before, body]);
      // All of them, whichever was right.
      for (const signature of claim.signatures) if (digests.equal(wanted, signature)) isGood = true;
    }
    return isGood;
  };
};

const isGitlabToken = (rule: VerifyWebhook, headers: readonly HeaderField[], digests: PolicyDigests): boolean => {
  const given = fieldValueOf(headers, 'x-gitlab-token');
  if (given === null || given === '') return false;
  // Of digests: of two texts themselves the time would tell whether their lengths are equal.
  const sum = utf8Bytes(digests.sha256Hex(textOfBytes(given)));
  let isGood = false;
  for (const secret of rule.secrets) if (digests.equal(utf8Bytes(digests.sha256Hex(secret)), sum)) isGood = true;
  return isGood;
};

/** Standard Webhooks write the key itself in base64; all others take the text. */
const keyOf = ({ provider }: VerifyWebhook, secret: string): Uint8Array | null =>
  provider === 'standard' ? base64Bytes(secret.replace(/^whsec_/, '')) : utf8Bytes(secret);

const claimOf = (rule: VerifyWebhook, headers: readonly HeaderField[], nowMs: number): Claim | null => {
  switch (rule.provider) {
    case 'standard':
      return standardClaim(headers, nowMs);
    case 'stripe':
      return stripeClaim(headers, nowMs);
    case 'slack':
      return slackClaim(headers, nowMs);
    case 'github':
      return plainClaim(headers, 'x-hub-signature-256', 'sha256', 'hex', 'sha256=');
    case 'shopify':
      return plainClaim(headers, 'x-shopify-hmac-sha256', 'sha256', 'base64', '');
    case 'hmac':
      return plainClaim(
        headers,
        (rule.header ?? '').toLowerCase(),
        rule.algorithm ?? 'sha256',
        rule.encoding ?? 'hex',
        rule.prefix ?? '',
      );
    case 'gitlab':
      return null;
  }
};

const plainClaim = (
  headers: readonly HeaderField[],
  header: string,
  algorithm: Claim['algorithm'],
  encoding: 'hex' | 'base64',
  prefix: string,
): Claim | null => {
  const value = fieldValueOf(headers, header);
  if (value === null || !value.startsWith(prefix)) return null;
  const text = value.slice(prefix.length);
  return { algorithm, before: '', signatures: listed(encoding === 'hex' ? hexBytes(text) : base64Bytes(text)) };
};

/** Svix sends the same under names of its own. Of one sender all three fields have the same prefix. */
const standardClaim = (headers: readonly HeaderField[], nowMs: number): Claim | null =>
  prefixedClaim('webhook', headers, nowMs) ?? prefixedClaim('svix', headers, nowMs);

const prefixedClaim = (prefix: string, headers: readonly HeaderField[], nowMs: number): Claim | null => {
  const id = fieldValueOf(headers, `${prefix}-id`);
  const time = fieldValueOf(headers, `${prefix}-timestamp`);
  const given = fieldValueOf(headers, `${prefix}-signature`);
  if (id === null || id === '' || given === null || !isRecent(time, nowMs)) return null;
  const signatures = given
    .split(' ')
    .flatMap((one) => (one.startsWith('v1,') ? listed(base64Bytes(one.slice('v1,'.length))) : []));
  return { algorithm: 'sha256', before: `${id}.${time}.`, signatures: signatures.slice(0, SIGNATURES_MAX) };
};

const stripeClaim = (headers: readonly HeaderField[], nowMs: number): Claim | null => {
  const given = fieldValueOf(headers, 'stripe-signature');
  if (given === null) return null;
  let time: string | null = null;
  const signatures: Uint8Array[] = [];
  for (const item of given.split(',')) {
    const [name, value = ''] = item.trim().split('=', 2);
    if (name === 't') time ??= value;
    else if (name === 'v1') signatures.push(...listed(hexBytes(value)));
  }
  if (!isRecent(time, nowMs)) return null;
  return { algorithm: 'sha256', before: `${time}.`, signatures: signatures.slice(0, SIGNATURES_MAX) };
};

const slackClaim = (headers: readonly HeaderField[], nowMs: number): Claim | null => {
  const time = fieldValueOf(headers, 'x-slack-request-timestamp');
  const given = fieldValueOf(headers, 'x-slack-signature');
  if (given === null || !given.startsWith('v0=') || !isRecent(time, nowMs)) return null;
  return { algorithm: 'sha256', before: `v0:${time}:`, signatures: listed(hexBytes(given.slice('v0='.length))) };
};

/** A sender that changes its secret signs with two; a long list would only be work. */
const SIGNATURES_MAX = 10;

const listed = (bytes: Uint8Array | null): Uint8Array[] => (bytes === null || bytes.length === 0 ? [] : [bytes]);

/** Of either side: a clock that runs ahead is as wrong as one that is late. */
const isRecent = (time: string | null, nowMs: number): time is string =>
  time !== null &&
  /^\d{1,12}$/.test(time) &&
  Math.abs(Number(time) - Math.floor(nowMs / 1000)) <= POLICY_WEBHOOK_SKEW_SECS;
