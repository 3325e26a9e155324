// Sign-in of this build's client at an edge of version 1 and at a newer edge: the Auth message, and the use of the response.
import { readFileSync } from 'node:fs';
import { CAPABILITIES, decodeControl, encodeControl, type MessageOf } from '@tunnel/protocol';
import { Secret } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../client.ts';
import { ScriptedEdge } from '../scripted-edge.fixture.ts';
import { authMessage } from './authenticate.ts';

const vector = (file: string, name: string): string => {
  const url = new URL(`../../../protocol/vectors/${file}`, import.meta.url);
  const entries = JSON.parse(readFileSync(url, 'utf8')) as { name: string; text: string }[];
  return entries.find((entry) => entry.name === name)?.text ?? '';
};

const token = new Secret('tnl_EXAMPLEexampleEXAMPLEexample0000000000');

describe('the Auth message', () => {
  it('equals the version 1 bytes when the client offers no capabilities', () => {
    const who = { token, agent: 'tunnel/0.1.0 linux node/20', resume: null };
    expect(encodeControl(authMessage(who, []))).toBe(vector('control.json', 'Auth, first start'));
  });

  it('lists the capabilities that the client offers beyond version 1', () => {
    const who = { token, agent: 'tunnel/0.2.0 linux node/24', resume: null };
    const text = vector('control-capabilities.json', 'Auth, a client with more to offer than version 1');
    expect(encodeControl(authMessage(who, ['example-a', 'example-b']))).toBe(text);
    const resume = { sessionId: 'ses_5hR8sWq2NfV0kTz7LxPc', secret: 'q3JX0w1vZ7n5T2m9' };
    const again = vector('control-capabilities.json', 'Auth, resume and capabilities');
    expect(encodeControl(authMessage({ ...who, resume }, ['example-a']))).toBe(again);
  });
});

describe('the Auth message of this build', () => {
  it('offers all capabilities of the client', () => {
    const who = { token, agent: 'tunnel/0.2.0 linux node/24', resume: null };
    const text = vector('control-capabilities.json', 'Auth, a client that packs datagrams together');
    expect(encodeControl(authMessage(who))).toBe(text);
  });
});

describe('the AuthOk message', () => {
  let edge: ScriptedEdge;
  beforeEach(async () => {
    edge = await new ScriptedEdge().listen();
  });
  afterEach(() => edge.close());

  /** Makes the edge answer Auth with the given golden vector and a valid carrier token. */
  const answerWith = (text: string): void => {
    edge.script.Auth = (_message, session) => {
      const decoded = decodeControl(text);
      if (!decoded.ok) throw decoded.fault;
      const welcome = decoded.message as MessageOf<'AuthOk'>;
      session.send({ ...welcome, carriers: { ...welcome.carriers, count: 1, tokens: edge.tokensFor(session, 1) } });
      return true;
    };
  };

  it.each([
    ['of version 1', 'control.json', 'AuthOk, new session'],
    ['of a newer edge, with names that were not offered', 'control-capabilities.json', 'AuthOk, what both know'],
  ])('%s lets the client in, and the client speaks version 1', async (_, file, name) => {
    edge.capabilities = [];
    answerWith(vector(file, name));
    const client = await connect({ server: edge.address, token: 'tnl_test' });
    const tunnel = await client.open({ protocol: 'tcp', localPort: 5432 });
    expect(tunnel.state).toBe('open');
    expect(edge.session.all('Auth')[0]).toHaveProperty('capabilities', CAPABILITIES);
    // The edge supports no capability: a single frame beyond version 1 would end the session.
    await eventually(() => expect(edge.session.mux.liveCarriers).toBe(1));
    await client.close();
  });

  it('the client handles a message that arrives together with AuthOk', async () => {
    edge.script.Auth = (_message, session) => {
      edge.welcome(session, false);
      session.send({ type: 'Error', code: 'ACCOUNT_SUSPENDED', message: 'suspended', fatal: true });
      return true;
    };
    await expect(connect({ server: edge.address, token: 'tnl_test' })).rejects.toMatchObject({ message: 'suspended' });
  });
});
