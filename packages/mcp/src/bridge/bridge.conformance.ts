// Guarantees of a bridge to its callers. The suite runs with every kind of server, and with clients of two protocol eras.
import { Client as ClientOf2026, StreamableHTTPClientTransport as HttpOf2026 } from '@modelcontextprotocol/client';
import { Client as ClientOf2025 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HttpOf2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Bridge, type BridgeOptions, bridgeStdio } from './bridge.ts';
import { BRIDGE_LIMITS } from './bridge-limits.ts';
import type { ServerCommand } from './child-process.ts';
import { bearerHash } from './request-gate.ts';
import { TOOL_NAMES } from './stdio-servers.fixture.ts';

export const TOKEN = 'mcp_00000000000000000000000000000000';
const URL_OF_BRIDGE = new URL('https://published.example.com/mcp');

/** A bridge under test with recorded output and events, and a fake clock. */
export interface BridgeUnderTest {
  readonly bridge: Bridge;
  readonly clock: FakeClock;
  readonly said: string[];
  readonly ends: string[];
  readonly restarts: number[];
}

export const startBridge = async (
  command: ServerCommand,
  options: Partial<BridgeOptions> = {},
): Promise<BridgeUnderTest> => {
  const clock = new FakeClock();
  const said: string[] = [];
  const ends: string[] = [];
  const restarts: number[] = [];
  const bridge = await bridgeStdio(command, {
    clock,
    version: '1.0.0',
    tokenHash: bearerHash(TOKEN),
    onStderr: (line) => said.push(line),
    onEnded: (reason, restartInMs) => ends.push(`${reason}, ${restartInMs}`),
    onRestarted: () => restarts.push(clock.monotonic()),
    ...options,
  });
  return { bridge, clock, said, ends, restarts };
};

/** Common interface of old and new clients, as far as the suite needs. */
interface Caller {
  readonly close: () => Promise<void>;
  readonly getServerVersion: ClientOf2026['getServerVersion'];
  readonly getInstructions: ClientOf2026['getInstructions'];
  readonly listTools: () => ReturnType<ClientOf2026['listTools']>;
  readonly call: (
    name: string,
    given?: Record<string, unknown>,
    options?: { signal?: AbortSignal; onprogress?: (progress: object) => void },
  ) => Promise<Record<string, unknown>>;
  readonly listResources: () => ReturnType<ClientOf2026['listResources']>;
  readonly listResourceTemplates: () => ReturnType<ClientOf2026['listResourceTemplates']>;
  readonly readResource: ClientOf2026['readResource'];
  readonly listPrompts: () => ReturnType<ClientOf2026['listPrompts']>;
  readonly getPrompt: ClientOf2026['getPrompt'];
  readonly complete: ClientOf2026['complete'];
}

type Era = '2025' | '2026';

const callAs = async (era: Era, bridge: Bridge): Promise<Caller> => {
  const options = {
    fetch: (url: string | URL, init?: RequestInit) => bridge.fetch(new Request(url, init)),
    requestInit: { headers: { authorization: `Bearer ${TOKEN}`, host: URL_OF_BRIDGE.host } },
  };
  const info = { name: 'caller', version: '1' };
  if (era === '2026') {
    const client = new ClientOf2026(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new HttpOf2026(URL_OF_BRIDGE, options));
    return withCall(client, (params, given) => client.callTool(params, given));
  }
  const client = new ClientOf2025(info);
  await client.connect(new HttpOf2025(URL_OF_BRIDGE, options) as never);
  return withCall(client, (params, given) => client.callTool(params, undefined, given));
};

type CallTool = (params: { name: string; arguments: Record<string, unknown> }, options: object) => Promise<object>;

const withCall = (client: object, callTool: CallTool): Caller =>
  Object.assign(client as Caller, {
    call: (name: string, given: Record<string, unknown> = {}, options: object = {}) =>
      callTool({ name, arguments: given }, options) as Promise<Record<string, unknown>>,
  });

const textOf = (result: Record<string, unknown>): unknown => (result['content'] as { text?: string }[])[0]?.text;

const ERAS = ['2025', '2026'] as const;

/** Registers the whole suite for a kind of server. A single server serves every caller. */
export const describeBridge = (kind: string, command: ServerCommand, name: string): void => {
  describe(`a bridged server ${kind}`, () => {
    let under: BridgeUnderTest;
    /** Two clients for every protocol era. */
    const callers = new Map<Era, readonly [Caller, Caller]>();
    const two = (era: Era): readonly [Caller, Caller] => callers.get(era) as readonly [Caller, Caller];
    beforeAll(async () => {
      under = await startBridge(command);
      const call = (era: Era): Promise<Caller> => callAs(era, under.bridge);
      for (const era of ERAS) callers.set(era, [await call(era), await call(era)]);
    });
    afterAll(async () => {
      for (const caller of [...callers.values()].flat()) await caller.close();
      await under.bridge.close();
      expect(under.clock.pendingTimers).toBe(0);
    });
    // Waits until no call of the previous test is open.
    afterEach(() => eventually(() => expect(under.bridge.openCalls).toBe(0)));

    it.each(ERAS)('shows its name, instructions and tools to a client of %s', async (era) => {
      const [caller] = two(era);
      expect(caller.getServerVersion()).toMatchObject({ name, version: '1.2.3' });
      expect(caller.getInstructions()).toBe('Ask me anything.');
      const { tools } = await caller.listTools();
      expect(tools.map((tool) => tool.name)).toEqual(TOOL_NAMES);
      expect(tools[2]?.inputSchema).toMatchObject({ type: 'object', properties: { text: { type: 'string' } } });
      expect(under.bridge.server.tools).toEqual(TOOL_NAMES);
    });

    it.each(ERAS)('returns its results and errors unchanged to a client of %s', async (era) => {
      const [caller] = two(era);
      const answer = await caller.call('echo', { text: 'héllo\u2028' });
      expect(answer).toMatchObject({ structuredContent: { text: 'héllo\u2028' } });
      expect(textOf(answer)).toBe('héllo\u2028');
      expect(textOf(await caller.call('variable', { name: 'GIVEN' }))).toBe('to the server');
      await expect(caller.call('missing')).rejects.toMatchObject({ code: -32602 });
    });

    it.each(ERAS)('offers resources, templates, prompts and completions to a client of %s', async (era) => {
      const [caller] = two(era);
      expect((await caller.listResources()).resources.map(({ uri }) => uri)).toEqual(['test://one']);
      const { resourceTemplates } = await caller.listResourceTemplates();
      expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['test://{name}']);
      const { contents } = await caller.readResource({ uri: 'test://two' });
      expect(contents).toMatchObject([{ uri: 'test://two', text: 'this is test://two' }]);
      expect((await caller.listPrompts()).prompts.map((prompt) => prompt.name)).toEqual(['greet']);
      const { messages } = await caller.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
      expect(messages).toMatchObject([{ role: 'user', content: { text: 'Greet Ada' } }]);
      const { completion } = await caller.complete({
        ref: { type: 'ref/prompt', name: 'greet' },
        argument: { name: 'name', value: 'al' },
      });
      expect(completion.values).toEqual(['alan']);
    });

    it.each(ERAS)('keeps clients of %s separate even if they use the same ids and progress tokens', async (era) => {
      const ask = async (who: number, index: number): Promise<unknown> =>
        textOf(await (two(era)[who] as Caller).call('echo', { text: `${who} ${index}` }));
      const asked = Array.from({ length: 10 }, (_, index) => [ask(0, index), ask(1, index)]).flat();
      const wanted = Array.from({ length: 10 }, (_, index) => [`0 ${index}`, `1 ${index}`]).flat();
      expect(await Promise.all(asked)).toEqual(wanted);

      const steps: [object[], object[]] = [[], []];
      const answers = await Promise.all(
        two(era).map((who, index) => who.call('steps', {}, { onprogress: (step) => steps[index]?.push(step) })),
      );
      const told = [1, 2, 3].map((progress) => ({ progress, total: 3, message: `step ${progress}` }));
      await eventually(() => expect(steps).toEqual([told, told]));
      expect(new Set(answers.map(textOf)).size).toBe(2);
      // A caller without a progress token gets no progress messages.
      expect(textOf(await two(era)[0].call('steps'))).toBe('token null');
    });

    it.each(ERAS)('gets a cancellation from a client of %s, without effect on other calls', async (era) => {
      const [caller, other] = two(era);
      const before = under.said.length;
      const stop = new AbortController();
      const hanging = caller.call('hang', {}, { signal: stop.signal });
      const outcome = hanging.then(
        () => 'answered',
        () => 'given up',
      );
      await eventually(() => expect(under.said.slice(before)).toEqual(['hanging']));
      stop.abort();
      expect(await outcome).toBe('given up');
      await eventually(() => expect(under.said.slice(before)).toEqual(['hanging', 'cancelled']));
      expect(textOf(await other.call('echo', { text: 'still here' }))).toBe('still here');
    });

    it.each(ERAS)('keeps running when an answer for a client of %s is over the limit and is refused', async (era) => {
      const [caller] = two(era);
      const pid = under.bridge.pid;
      const tooLarge = caller.call('big', { bytes: BRIDGE_LIMITS.MESSAGE_MAX_BYTES });
      await expect(tooLarge).rejects.toMatchObject({ code: -32603 });
      expect(textOf(await caller.call('big', { bytes: 900_000 }))).toHaveLength(900_000);
      expect(under.bridge.pid).toBe(pid);
    });

    it('shows newly added tools, and its original tools after a crash and restart', async () => {
      const [old, other] = two('2025');
      const [caller] = two('2026');
      const names = async (who: Caller): Promise<string[]> => (await who.listTools()).tools.map((tool) => tool.name);
      await caller.call('grow');
      await eventually(async () => expect(await names(caller)).toContain('grown'));
      expect(await names(old)).toContain('grown');

      const pid = under.bridge.pid;
      const hanging = [old, caller].map((who) => expect(who.call('hang')).rejects.toMatchObject({ code: -32603 }));
      await eventually(() => expect(under.bridge.openCalls).toBe(2));
      await expect(other.call('crash')).rejects.toMatchObject({ code: -32603 });
      await Promise.all(hanging);
      expect(under.ends).toEqual(['exited with code 3, 1000']);
      await expect(caller.call('echo', { text: 'away' })).rejects.toMatchObject({ code: -32603 });
      await under.clock.advance(1000);
      await eventually(() => expect(under.restarts).toHaveLength(1));
      expect(under.bridge.pid).not.toBe(pid);
      for (const who of [old, caller]) {
        expect(await names(who)).toEqual(TOOL_NAMES);
        expect(textOf(await who.call('echo', { text: 'back' }))).toBe('back');
      }
    });
  });
};
