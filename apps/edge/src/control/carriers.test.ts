import { WIRE_LIMITS } from '@tunnel/protocol';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CARRIER_TOKEN_LIFE_MS, CarrierTokens } from './carriers.ts';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { askUpgrade, openCarrier } from './raw-carrier.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

describe('on the control port', () => {
  let clock: FakeClock;
  let fixture: ControlFixture;
  let client: RawClient;
  let tokens: string[];

  beforeEach(async () => {
    clock = new FakeClock();
    fixture = await startControl({ clock });
    const entered = await RawClient.enter(fixture.port, 'op');
    client = entered.client;
    tokens = entered.welcome.carriers.tokens;
  });
  afterEach(() => fixture.stop());

  const moreTokens = async (count: number): Promise<string[]> => {
    client.send({ type: 'RequestCarriers', count });
    return (await client.next('CarrierTokens')).tokens;
  };

  const liveCarriers = (): number => fixture.control.figures.carriers;

  describe('a carrier', () => {
    it('is accepted with a token of its session', async () => {
      await openCarrier(fixture.port, tokens[0] as string);
      await openCarrier(fixture.port, tokens[1] as string);
      expect(liveCarriers()).toBe(2);
    });

    it('is accepted with a token requested later', async () => {
      const fresh = await moreTokens(2);
      expect(fresh).toHaveLength(2);
      await openCarrier(fixture.port, fresh[0] as string);
      expect(liveCarriers()).toBe(1);
    });

    it('closes when its client shuts down the session', async () => {
      const carrier = await openCarrier(fixture.port, tokens[0] as string);
      const closed = new Promise((resolve) => {
        carrier.start({
          onBytes: () => false,
          onReady: () => {},
          onClosed: resolve,
          report: rethrow,
          clock: new FakeClock(),
        });
      });
      client.send({ type: 'ShuttingDown', reason: 'done', drain_secs: 0 });
      await closed;
      await eventually(() => expect(liveCarriers()).toBe(0));
    });
  });

  describe('a carrier request', () => {
    it('without a token, with a wrong token or with a used token gets a 401', async () => {
      expect((await askUpgrade(fixture.port, {})).status).toBe(401);
      expect((await askUpgrade(fixture.port, { token: 'x' })).status).toBe(401);
      const token = tokens[0] as string;
      await openCarrier(fixture.port, token);
      const again = await askUpgrade(fixture.port, { token });
      expect(again.status).toBe(401);
      expect(again.text).toMatch(/\r\n\r\nthe carrier token is unknown or was already used\n$/);
    });

    it('with a token older than 30 s or of a lost connection gets a 401', async () => {
      await clock.advance(5000);
      const [young = ''] = await moreTokens(1);
      client.ws.terminate();
      await eventually(() => expect(fixture.control.figures.sessions).toBe(0));
      expect((await askUpgrade(fixture.port, { token: young })).status).toBe(401);
      await clock.advance(CARRIER_TOKEN_LIFE_MS);
      expect((await askUpgrade(fixture.port, { token: tokens[0] as string })).status).toBe(401);
    });

    it('over the limit of 16 carriers per session gets a 429', async () => {
      const all = [...tokens, ...(await moreTokens(13))];
      for (const token of all.slice(0, 16)) await openCarrier(fixture.port, token);
      const answer = await askUpgrade(fixture.port, { token: all[16] as string });
      expect(answer.status).toBe(429);
      expect(answer.text).toContain('carrier limit of 16 per session reached');
    });

    it('for another protocol gets a 426', async () => {
      expect((await askUpgrade(fixture.port, { token: tokens[0] as string, upgrade: 'websocket' })).status).toBe(426);
      expect((await askUpgrade(fixture.port, { token: tokens[0] as string, upgrade: 'tunnel-carrier/9' })).status).toBe(
        426,
      );
    });
  });

  describe('bytes that violate the carrier protocol', () => {
    it('end the session with a fatal error, while the edge keeps working', async () => {
      const { socket } = await askUpgrade(fixture.port, { token: tokens[0] as string });
      socket.on('error', () => {});
      socket.write(Buffer.alloc(64, 0xff));
      expect(await client.next('Error')).toMatchObject({ code: 'CARRIER_PROTOCOL', fatal: true });
      expect((await client.closed).code).toBe(4403);
      await RawClient.enter(fixture.port, 'op');
    });
  });
});

describe('a carrier token', () => {
  const setUp = () => {
    const clock = new FakeClock();
    return { clock, tokens: new CarrierTokens<{ name: string }>(clock), a: { name: 'a' }, b: { name: 'b' } };
  };

  it('can be redeemed once, for the session it was issued to', () => {
    const { tokens, a, b } = setUp();
    const [ofA = ''] = tokens.issue(a, 2);
    const [ofB = ''] = tokens.issue(b, 1);
    expect(tokens.redeem(ofB)).toBe(b);
    expect(tokens.redeem(ofA)).toBe(a);
    expect(tokens.redeem(ofA)).toBeNull();
    expect(tokens.redeem('never-made')).toBeNull();
  });

  it('expires after 30 s and is then removed', async () => {
    const { clock, tokens, a } = setUp();
    const [first = '', second = ''] = tokens.issue(a, 3);
    await clock.advance(29_999);
    expect(tokens.redeem(first)).toBe(a);
    await clock.advance(1);
    expect(tokens.redeem(second)).toBeNull();
    tokens.dropExpired();
    expect(tokens.size).toBe(0);
  });

  it('is revoked, oldest first, when its session has too many outstanding tokens', () => {
    const { tokens, a, b } = setUp();
    const [ofB = ''] = tokens.issue(b, 1);
    const [oldest = ''] = tokens.issue(a, 16);
    for (let n = 0; n < 10; n += 1) tokens.issue(a, 16);
    expect(tokens.size).toBe(WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX + 1);
    expect(tokens.redeem(oldest)).toBeNull();
    expect(tokens.redeem(ofB)).toBe(b);
  });

  it('is revoked together with the other tokens of its session', () => {
    const { tokens, a, b } = setUp();
    const [ofA = ''] = tokens.issue(a, 4);
    tokens.issue(b, 1);
    tokens.revokeAll(a);
    expect(tokens.redeem(ofA)).toBeNull();
    expect(tokens.size).toBe(1);
  });
});
