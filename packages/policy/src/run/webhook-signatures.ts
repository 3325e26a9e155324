// Verifies webhooks: the signature formats of the providers, over the raw body, with any of the secrets. Compared in constant time.

import { fieldValueOf, type HeaderField } from '@tunnel/http1';
import type { VerifyWebhook } from '../policy.ts';
import type { PolicyDigests } from '../policy-step.ts';
import { base64Bytes, hexBytes, textOfBytes, utf8Bytes } from '../text/bytes.ts';

/** Maximum difference between the signed timestamp and the edge's clock, in either direction. */
const POLICY_WEBHOOK_SKEW_SECS = 300;

/** Data of a webhook's signature from the request head, read before the body is buffered. */
interface Claim {
  readonly algorithm: 'sha1' | 'sha256' | 'sha512';
  /** Text that the webhook's sender signed before the body. */
  readonly before: string;
  /** Signatures in the webhook's head. A match with any of them suffices. */
  readonly signatures: readonly Uint8Array[];
}

export type WebhookCheck = (body: Uint8Array) => boolean;

/** Remaining budget of body bytes that a request may have hashed, over all rules and secrets. */
export interface HashRoom {
  hashLeft: number;
}

/**
 * Returns null if the head already proves the webhook invalid (no signature, or an old timestamp), so that no body is buffered. Returns
 * 'good' if the head suffices: GitLab sends its secret instead of a signature.
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
      // Hashing blocks the event loop, so it is limited. Secrets beyond the limit count as wrong.
      room.hashLeft -= body.length;
      if (room.hashLeft < 0) break;
      const wanted = digests.hmac(claim.algorithm, key, [before, body]);
      // Compares every signature even after a match, for constant time.
      for (const signature of claim.signatures) if (digests.equal(wanted, signature)) isGood = true;
    }
    return isGood;
  };
};

const isGitlabToken = (rule: VerifyWebhook, headers: readonly HeaderField[], digests: PolicyDigests): boolean => {
  const given = fieldValueOf(headers, 'x-gitlab-token');
  if (given === null || given === '') return false;
  // Compares digests, because comparing the texts would reveal by its timing whether the lengths are equal.
  const sum = utf8Bytes(digests.sha256Hex(textOfBytes(given)));
  let isGood = false;
  for (const secret of rule.secrets) if (digests.equal(utf8Bytes(digests.sha256Hex(secret)), sum)) isGood = true;
  return isGood;
};

/** Standard Webhooks encode the key in base64. Other providers use the text. */
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

/** Svix sends the same values with the prefix `svix`. The three fields of a webhook share the prefix. */
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

/** Maximum signatures of a webhook that are compared. A sender that rotates its secret sends two. */
const SIGNATURES_MAX = 10;

const listed = (bytes: Uint8Array | null): Uint8Array[] => (bytes === null || bytes.length === 0 ? [] : [bytes]);

/** Rejects webhook timestamps that are too old or too far in the future. */
const isRecent = (time: string | null, nowMs: number): time is string =>
  time !== null &&
  /^\d{1,12}$/.test(time) &&
  Math.abs(Number(time) - Math.floor(nowMs / 1000)) <= POLICY_WEBHOOK_SKEW_SECS;
