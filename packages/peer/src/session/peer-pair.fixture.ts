// A subscriber and a publisher over in-memory networks, with a simulated edge relay, a network between the peers, and a fake clock.
import { type ByteDuplex, MemoryBudget, type MuxStream } from '@tunnel/mux';
import { Secret } from '@tunnel/runtime';
import { FakeClock, MemoryNetwork, RecordingReader, rethrow } from '@tunnel/testkit';
import type { AddressObserver, ObservedAddresses } from '../direct/candidates.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import { type Peer, PeerPublisher } from './peer-publisher.ts';
import type { PeerPath, PeerSettings } from './peer-session.ts';
import { PeerSubscriber } from './peer-subscriber.ts';

export const HEAD = { tunnelId: 'peer', visitor: '127.0.0.1:1' };

export interface SideOptions {
  readonly secret?: string;
  readonly service?: 'tcp' | 'udp';
  readonly direct?: boolean;
  readonly ports?: ObservedAddresses['ports'];
  readonly transport?: PeerTransport | null;
  readonly observer?: AddressObserver | null;
  /** Addresses of the peer in addition to the address in the network. */
  readonly moreAddresses?: string[];
}

/** The simulated networks, clock and relay of a subscriber and a publisher. */
export class Harness {
  readonly clock = new FakeClock();
  readonly network = new MemoryNetwork(this.clock);
  readonly relays = new MemoryNetwork(this.clock);
  readonly #hosts = { subscriber: '10.0.0.1', publisher: '10.0.0.2' };
  #streams = 0;

  constructor() {
    this.network.delayMs = 10;
    this.relays.delayMs = 20;
  }

  cut(): void {
    this.network.cut(this.#hosts.subscriber, this.#hosts.publisher);
  }

  /** Drops all packets of one side; packets of the opposite side still arrive. */
  blockFrom(side: 'subscriber' | 'publisher'): void {
    const { subscriber, publisher } = this.#hosts;
    if (side === 'subscriber') this.network.block(subscriber, publisher);
    else this.network.block(publisher, subscriber);
  }

  /** Creates both ends of a relay stream, joined as by an edge. */
  relay(): { readonly subscriber: ByteDuplex; readonly publisher: ByteDuplex } {
    const quiet = { onDatagram: () => {}, abandon: rethrow };
    const one = this.relays.transport('s').open(quiet);
    const other = this.relays.transport('p').open(quiet);
    this.#streams += 1;
    return {
      subscriber: one.connect({ own: this.#streams, theirs: this.#streams }, { host: 'p', port: other.port }),
      publisher: other.connect({ own: this.#streams, theirs: this.#streams }, { host: 's', port: one.port }),
    };
  }

  settings(side: 'subscriber' | 'publisher', options: SideOptions): PeerSettings {
    const host = this.#hosts[side];
    const { ports = 'consistent', transport = this.network.transport(host) } = options;
    const observer = options.observer === undefined ? observerOf(ports) : options.observer;
    return {
      name: 'office-db',
      secret: new Secret(options.secret ?? 'a secret of tests'),
      service: options.service ?? 'tcp',
      direct: options.direct ?? true,
      network: {
        loadTransport: () => Promise.resolve(transport),
        observer: () => observer,
        ownAddresses: () => [host, ...(options.moreAddresses ?? [])],
      },
      clock: this.clock,
      budget: new MemoryBudget(1024 * 1024 * 1024),
      report: rethrow,
    };
  }

  subscriber(options: SideOptions = {}): SubscriberSide {
    return new SubscriberSide(this.settings('subscriber', options));
  }

  publisher(options: SideOptions = {}): PublisherSide {
    return new PublisherSide(this.settings('publisher', options));
  }

  join(subscriber: SubscriberSide, publisher: PublisherSide, peerId = 'peer_1'): { cut(): void } {
    const ends = this.relay();
    publisher.side.acceptRelay(ends.publisher, peerId);
    subscriber.side.attachRelay(ends.subscriber);
    return { cut: () => this.relays.lose(ends.subscriber) };
  }
}

const observerOf = (ports: ObservedAddresses['ports']): AddressObserver => ({
  ask: () => ({ onDatagram: () => false, result: Promise.resolve({ addresses: [], ports }), stop: () => {} }),
});

const textOf = ({ path, reason }: PeerPath): string => (reason === '' ? path : `${path} (${reason})`);

export class SubscriberSide {
  readonly side: PeerSubscriber;
  readonly told: string[] = [];
  readonly paths: string[] = [];

  constructor(settings: PeerSettings) {
    this.side = new PeerSubscriber(settings, {
      onReady: () => this.told.push('ready'),
      onPath: (path) => this.paths.push(textOf(path)),
      onRelayLost: () => this.told.push('relay lost'),
      onFailed: (fault) => this.told.push(fault.code),
    });
  }

  get path(): string {
    return textOf(this.side.path);
  }

  open(): OpenedStream {
    return new OpenedStream(this.side);
  }
}

export class OpenedStream {
  stream: MuxStream | null = null;
  reader: RecordingReader | null = null;
  refused: string | null = null;

  constructor(subscriber: PeerSubscriber) {
    const pending = subscriber.open(HEAD, {
      onOpened: (stream) => {
        this.stream = stream;
        this.reader = new RecordingReader(stream);
      },
      onRefused: (reason) => {
        this.refused = reason.code;
      },
      abandon: rethrow,
    });
    if (pending === null) this.refused = 'none';
  }

  write(text: string): void {
    this.stream?.write(Buffer.from(text), 0, text.length, false);
  }
}

/** A publisher with an echo service. */
export class PublisherSide {
  readonly side: PeerPublisher;
  readonly told: string[] = [];
  readonly paths: string[] = [];
  readonly attempts: string[] = [];
  readonly peers: Peer[] = [];
  readonly streams: MuxStream[] = [];

  constructor(settings: PeerSettings) {
    this.side = new PeerPublisher(settings, {
      onStream: (stream) => {
        this.streams.push(stream);
        stream.accept();
        stream.read({
          onData: (bytes, start, end) => stream.write(bytes, start, end, false),
          onDrain: () => stream.resume(),
          onEnd: () => stream.end(),
          onReset: () => this.told.push('stream reset'),
          abandon: rethrow,
        });
      },
      onDatagramStream: (stream) => {
        stream.accept();
        stream.read({
          onDatagram: (bytes, start, end) => void stream.send(bytes, start, end),
          onReset: () => this.told.push('flow reset'),
          abandon: rethrow,
        });
      },
      onJoined: (peer, isNew) => {
        this.peers.push(peer);
        this.told.push(`${isNew ? 'joined' : 'back'} ${peer.peerId}`);
      },
      onPath: (_peer, path) => this.paths.push(textOf(path)),
      onAttempt: (_peer, outcome) => this.attempts.push(outcome),
      onGone: (peer, reason) => this.told.push(`gone ${peer.peerId} ${reason}`),
      onFailed: (peerId, fault) => this.told.push(`${fault.code} ${peerId}`),
    });
  }

  get path(): string {
    const peer = this.side.peers[0];
    return peer === undefined ? 'none' : textOf(peer.path);
  }
}
