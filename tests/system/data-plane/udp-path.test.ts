// Tests of the UDP path between client and edge over a network that blocks, moves and replays packets, with real sockets and a fast
// clock.
import { SEALED_KIND } from '@tunnel/mux';
import { eventually } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { UdpPathStage, type UdpPathStageOptions } from './udp-path.fixture.ts';

/** Runs a test on a separate stage. Most of the time is spent waiting, so the tests of the file run concurrently. */
const on = async (options: UdpPathStageOptions, act: (stage: UdpPathStage) => Promise<void>): Promise<void> => {
  const stage = await UdpPathStage.open(options);
  try {
    await act(stage);
  } finally {
    await stage.close();
  }
};

/** Returns the number of datagrams that the client sent over UDP. */
const sentByUdp = (stage: UdpPathStage): number =>
  (stage.udp?.sent ?? []).filter(([kind]) => kind === SEALED_KIND.DATAGRAM).length;

/** Lets a visitor send a word every 20 ms of real time. Returns the longest time without a response, on the clock of the stage. */
const chat = async (stage: UdpPathStage, until: () => Promise<boolean>): Promise<number> => {
  let said = 0;
  let heard = 0;
  let longestMs = 0;
  let lastAt = stage.clock.monotonic();
  while (!(await until())) {
    stage.say(`word ${said}`);
    said += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Accepts any newer word: on a busy machine the latest word is always still in transit.
    let newest = said;
    while (newest > heard && !stage.heard(`word ${newest - 1}`)) newest -= 1;
    if (newest === heard) continue;
    heard = newest;
    longestMs = Math.max(longestMs, stage.clock.monotonic() - lastAt);
    lastAt = stage.clock.monotonic();
  }
  return Math.max(longestMs, stage.clock.monotonic() - lastAt);
};

it.concurrent('datagrams start on carriers and move to UDP once both ends have proven and reported the path', () =>
  on({}, async (stage) => {
    await stage.settle('udp');
    expect(stage.ways).toEqual(['carrier probing', 'udp']);
    await stage.echo('over udp');
    await stage.echo('again');
    await eventually(() => expect(sentByUdp(stage)).toBeGreaterThan(0));
    // A datagram that is too large for the UDP path travels on the carrier.
    await stage.echo('x'.repeat(20_000));
    const metrics = await (await fetch(`http://127.0.0.1:${stage.edge.addresses.metrics.port}/metrics`)).text();
    expect(metrics).toContain('tunnel_udp_paths{path="udp"} 1\n');
    expect(metrics).toContain('tunnel_udp_paths{path="carrier"} 0\n');
  }));

it.concurrent('a stopping edge serves flows on the UDP path for its drain time, without a pause', () =>
  on({}, async (stage) => {
    await stage.settle('udp');
    await stage.echo('one');
    await stage.echo('two');
    const stopped = stage.edge.stop({ drainMs: 5000 });
    const startedAt = stage.clock.monotonic();
    const longestMs = await chat(stage, async () => stage.clock.monotonic() - startedAt > 3000);
    // Without the drain rule the flow would be silent for all three seconds.
    expect(longestMs).toBeLessThan(2500);
    await stopped;
  }));

it.concurrent.each(['everything', 'to-target', 'to-senders'] as const)(
  'if UDP is blocked in use (%s), visitors lose at most 5 s, and datagrams return to UDP once it is open again',
  (block) =>
    on({}, async (stage) => {
      await stage.settle('udp');
      const udp = stage.udp as NonNullable<UdpPathStage['udp']>;
      const startedAt = stage.clock.monotonic();
      // Long enough for the path to count as stable, and shorter than the interval of idle pings.
      await chat(stage, async () => stage.clock.monotonic() - startedAt > 1000);
      udp.block = block;
      const isLeft = async (): Promise<boolean> => (await stage.edgeWay()) !== 'udp' && stage.ways.at(-1) !== 'udp';
      let leftAt = Number.POSITIVE_INFINITY;
      const silentMs = await chat(stage, async () => {
        if (leftAt > stage.clock.monotonic() && (await isLeft())) leftAt = stage.clock.monotonic();
        return stage.clock.monotonic() - leftAt > 500;
      });
      // Five seconds, plus a tolerance for a busy machine. A side that never leaves the path would stay silent until the end of the test.
      expect(silentMs).toBeLessThan(9000);
      await stage.echo('on carriers');
      udp.block = 'nothing';
      await stage.settle('udp', 20_000);
      await stage.echo('over udp again');
      expect(stage.ways).toEqual(['carrier probing', 'udp', 'carrier went-silent', 'udp']);
    }),
);

it.concurrent.each(['everything', 'to-target', 'to-senders'] as const)(
  'with UDP blocked from the start (%s), neither client nor edge uses the UDP path',
  (block) =>
    on({ block }, async (stage) => {
      await stage.echo('on carriers');
      await eventually(() => expect(stage.ways).toEqual(['carrier probing', 'carrier udp-blocked']));
      expect(await stage.edgeWay()).toMatch(/^carrier (probing|udp-blocked)$/);
      await stage.echo('still on carriers');
      expect(sentByUdp(stage)).toBe(0);
    }),
);

it.concurrent('the edge follows a client to a new address at its next packet, and both stay on the UDP path', () =>
  on({}, async (stage) => {
    await stage.settle('udp');
    await stage.echo('before');
    for (let move = 0; move < 5; move += 1) {
      stage.udp?.changeAddresses();
      // The next packet of the client reveals the new address: a PING at the latest, or the response of the service.
      await stage.echo(`after move ${move}`);
    }
    await eventually(async () => expect(await stage.edgeWay()).toBe('udp'));
    expect(stage.ways).toEqual(['carrier probing', 'udp']);
  }));

it.concurrent('after a resume, recorded packets are refused because the keys have changed', () =>
  on({}, async (stage) => {
    await stage.settle('udp');
    await stage.echo('before');
    const udp = stage.udp as NonNullable<UdpPathStage['udp']>;
    await eventually(() => expect(sentByUdp(stage)).toBeGreaterThan(0));
    const recorded = [...udp.sent];
    stage.tcp.resetAll();
    await eventually(() => expect(stage.ways.filter((way) => way === 'udp').length).toBe(2));
    await stage.settle('udp');
    for (const packet of recorded) udp.inject(packet);
    const refused = async (): Promise<number> => {
      const metrics = await (await fetch(`http://127.0.0.1:${stage.edge.addresses.metrics.port}/metrics`)).text();
      return Number(/tunnel_udp_packets_refused_total\{reason="unknown-path"\} (\d+)/.exec(metrics)?.[1]);
    };
    await eventually(async () => expect(await refused()).toBeGreaterThanOrEqual(recorded.length));
    expect(await stage.edgeWay()).toBe('udp');
    await stage.echo('after');
  }));

it.concurrent('a restarted edge offers a new UDP path', () =>
  on({}, async (stage) => {
    await stage.settle('udp');
    await stage.restartEdge();
    await eventually(() => expect(stage.ways.filter((way) => way === 'udp').length).toBe(2));
    await stage.settle('udp');
    await stage.echo('after');
  }));

it.concurrent('with path = "carrier" no UDP port is opened, and client and edge report the path as off', () =>
  on({ path: 'carrier' }, async (stage) => {
    expect(stage.edge.addresses.udpPorts).toEqual([]);
    await stage.settle('carrier off');
    await stage.echo('on carriers');
  }));

it.concurrent('a flow on the UDP path continues while the edge drains', () =>
  on({}, async (stage) => {
    await stage.settle('udp');
    await stage.echo('before');
    const stopping = stage.edge.stop({ drainMs: 4000 });
    const beganAt = stage.clock.monotonic();
    const silentMs = await chat(stage, async () => stage.clock.monotonic() - beganAt > 2500);
    expect(silentMs).toBeLessThan(2000);
    await stopping;
  }));
