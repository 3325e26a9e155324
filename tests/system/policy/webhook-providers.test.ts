// Tests of the webhooks of each provider, signed by the provider's own library where available. A genuine webhook reaches the service
// byte for byte, so that the service can verify it as well. A forged, old or foreign webhook never arrives.
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { expect } from 'vitest';
import { type OpenTunnel, openHttp, startWeb, wholeBody } from '../http-tunnels.fixture.ts';
import { TLS_FLAGS } from '../https-visitor.fixture.ts';
import { type Harness, it } from '../in-process.fixture.ts';
import { type Ask, VERSIONS, visitorOf } from './guarded-web.fixture.ts';

const SECRET = 'whsec_bmV3LW5ldy1uZXctbmV3LW5ldw==';
const OLD = 'whsec_b2xkLW9sZC1vbGQtb2xkLW9sZA==';
const FOREIGN = 'whsec_Zm9yZWlnbi1mb3JlaWduLWZvcg==';
/** Webhook body with multi-byte characters, long enough to arrive in many pieces. */
const BODY = JSON.stringify({ type: 'charge.succeeded', text: 'größer '.repeat(20_000) });

type Fields = Readonly<Record<string, string>>;
type Signer = (secret: string, at: Date, body?: string) => Fields;

const stripe = new Stripe('sk_test_0');
const secsOf = (at: Date): number => Math.floor(at.getTime() / 1000);
const hmac = (secret: string, text: string, encoding: 'hex' | 'base64', algorithm = 'sha256'): string =>
  createHmac(algorithm, secret).update(text).digest(encoding);

const SIGNERS: Readonly<Record<string, Signer>> = {
  standard: (secret, at, body = BODY) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(secsOf(at)),
    'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
  }),
  stripe: (secret, at, payload = BODY) => ({
    'stripe-signature': stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: secsOf(at) }),
  }),
  github: (secret, _at, body = BODY) => ({ 'x-hub-signature-256': `sha256=${hmac(secret, body, 'hex')}` }),
  slack: (secret, at, body = BODY) => ({
    'x-slack-request-timestamp': String(secsOf(at)),
    'x-slack-signature': `v0=${hmac(secret, `v0:${secsOf(at)}:${body}`, 'hex')}`,
  }),
  shopify: (secret, _at, body = BODY) => ({ 'x-shopify-hmac-sha256': hmac(secret, body, 'base64') }),
  gitlab: (secret) => ({ 'x-gitlab-token': secret }),
  hmac: (secret, _at, body = BODY) => ({ 'x-sign': `v=${hmac(secret, body, 'base64', 'sha512')}` }),
};
const TIMED = ['standard', 'stripe', 'slack'];

const POLICY = Object.keys(SIGNERS)
  .map((provider) => {
    const more = provider === 'hmac' ? ', header: x-sign, algorithm: sha512, encoding: base64, prefix: "v="' : '';
    const rule = `{ provider: ${provider}, secrets: ["${SECRET}", "${OLD}"]${more} }`;
    return `- { match: { path: "/${provider}" }, verify_webhook: ${rule} }\n`;
  })
  .join('');

interface Came {
  readonly url: string;
  readonly body: string;
  readonly headers: Fields;
}

const start = async (harness: Harness): Promise<OpenTunnel & { readonly came: Came[] }> => {
  const came: Came[] = [];
  const web = harness.use(
    await startWeb(async (request, response) => {
      const body = (await wholeBody(request)).toString();
      came.push({ url: request.url ?? '', body, headers: request.headers as Fields });
      response.end('taken');
    }),
  );
  const file = join(await harness.folder(), 'hooks.yml');
  writeFileSync(file, POLICY);
  const stack = await harness.stack({ tls: true });
  return { ...(await openHttp(harness, stack, web.port, [...TLS_FLAGS, '--policy', file])), came };
};

const post = async (ask: Ask, provider: string, headers: Fields, body = BODY): Promise<string> => {
  const told = await ask(`/${provider}`, { method: 'POST', headers, body });
  return told.status === 200 ? 'taken' : `${told.status} ${String(told.headers['x-tunnel-error'])}`;
};

it.for(VERSIONS)(
  '%s: genuine webhooks of seven providers arrive byte for byte, and forged, old or foreign webhooks are rejected',
  async (version, { harness }) => {
    const { endpoint, came } = await start(harness);
    const ask = visitorOf(harness, endpoint, version);
    const now = new Date();
    for (const [provider, sign] of Object.entries(SIGNERS)) {
      for (const secret of [SECRET, OLD]) {
        expect(await post(ask, provider, sign(secret, now)), provider).toBe('taken');
        expect(came.pop()).toMatchObject({ url: `/${provider}`, body: BODY });
      }
      const refused: [Fields, string][] = [
        [{}, BODY],
        [sign(FOREIGN, now), BODY],
        [sign(SECRET, now), provider === 'gitlab' ? '' : `${BODY} `],
      ];
      if (TIMED.includes(provider)) refused.push([sign(SECRET, new Date(now.getTime() - 400_000)), BODY]);
      for (const [headers, body] of provider === 'gitlab' ? refused.slice(0, 2) : refused) {
        expect(await post(ask, provider, headers, body), provider).toBe('403 POLICY_WEBHOOK_REFUSED');
      }
    }
    expect(came).toEqual([]);
  },
);

it('a verified webhook passes the check of the provider library, a single valid signature among several suffices, and a hundred signatures are rejected', async ({
  harness,
}) => {
  const { endpoint, came } = await start(harness);
  const ask = visitorOf(harness, endpoint, 'HTTP/1.1');
  const now = new Date();
  const of = (provider: string, secret: string): Fields => SIGNERS[provider]!(secret, now);
  expect(await post(ask, 'stripe', of('stripe', SECRET))).toBe('taken');
  const event = stripe.webhooks.constructEvent(came[0]!.body, came[0]!.headers['stripe-signature']!, SECRET);
  expect(event.type).toBe('charge.succeeded');
  const good = of('standard', SECRET);
  const foreign = of('standard', FOREIGN);
  const both = `v1a,xx ${foreign['webhook-signature']} ${good['webhook-signature']}`;
  expect(await post(ask, 'standard', { ...good, 'webhook-signature': both })).toBe('taken');
  expect(new Webhook(SECRET).verify(came[1]!.body, came[1]!.headers)).toMatchObject({ type: 'charge.succeeded' });
  const many = `${`${foreign['webhook-signature']} `.repeat(100)}${good['webhook-signature']}`;
  expect(await post(ask, 'standard', { ...good, 'webhook-signature': many })).toBe('403 POLICY_WEBHOOK_REFUSED');
  const stale = SIGNERS['stripe']!(SECRET, new Date(now.getTime() - 400_000))['stripe-signature']!;
  const renewed = `t=${secsOf(now)},${stale.replace(/^t=\d+,/, '')}`;
  for (const value of [stale, renewed, `${stale},t=${secsOf(now)}`, `t=${secsOf(now)},${stale}`]) {
    expect(await post(ask, 'stripe', { 'stripe-signature': value })).toBe('403 POLICY_WEBHOOK_REFUSED');
  }
  expect(came).toHaveLength(2);
});
