// Small round trips on a persistent connection: a message, its echo, the next message. Every echo is compared.
import { openConnection } from './connection.mjs';
import { patternPiece } from './pattern.mjs';
import { encodeRequest, SERVICE, SMALL_BYTES } from './request.mjs';

export class SmallTalk {
  /** Durations of all round trips since the last reset, in milliseconds. */
  times = [];
  #socket;
  #ended;
  #message;
  #echo = Buffer.alloc(SMALL_BYTES);
  #have = 0;
  #count = 0;
  #sentAt = 0;
  #talking = false;
  #settle = null;

  constructor(address, index) {
    this.#message = patternPiece(index * 1009, SMALL_BYTES);
    const first = encodeRequest(SERVICE.echo);
    const { socket, ended } = openConnection(address, first, (bytes, length) => this.#read(bytes, length));
    this.#socket = socket;
    this.#ended = ended;
  }

  /** Makes round trips until `stop()`. Rejects on a wrong echo, or if the connection ends. */
  talk() {
    this.#talking = true;
    const talked = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    const cut = this.#ended.then(() => {
      throw new Error('an echo connection ended');
    });
    this.#say();
    return Promise.race([talked, cut]);
  }

  /** Stops after the current round trip. */
  stop() {
    this.#talking = false;
  }

  #say() {
    this.#count += 1;
    this.#message.writeUInt32BE(this.#count, 0);
    this.#have = 0;
    this.#sentAt = performance.now();
    this.#socket.write(this.#message);
  }

  #read(bytes, length) {
    if (this.#have + length > SMALL_BYTES) return this.#settle?.reject(new Error('an echo is too long'));
    bytes.copy(this.#echo, this.#have, 0, length);
    this.#have += length;
    if (this.#have < SMALL_BYTES) return undefined;
    if (!this.#echo.equals(this.#message)) return this.#settle?.reject(new Error('an echo is not what was sent'));
    this.times.push(performance.now() - this.#sentAt);
    return this.#talking ? this.#say() : this.#settle?.resolve();
  }
}
