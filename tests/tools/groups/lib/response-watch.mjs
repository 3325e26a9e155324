// Follows the responses of a keep-alive connection: the number of awaited responses, the received bytes, and the status.

const HEAD_END = '\r\n\r\n';

export class ResponseWatch {
  /** Number of requests that were sent and not answered completely. */
  awaited = 0;
  /** Received bytes of the current response. */
  begun = 0;
  /** Whether the last response announced the end of the connection. */
  saidClose = false;
  #onResponse;
  #head = '';
  #bodyLeft = -1;
  #asked = '';

  /** Calls `onResponse({ status, error })` for each complete response; `error` is the code of a response by the edge itself. */
  constructor(onResponse) {
    this.#onResponse = onResponse;
  }

  /** Takes bytes from the visitor, who sends requests without bodies. */
  sent(bytes) {
    const parts = (this.#asked + bytes.toString('latin1')).split(HEAD_END);
    this.#asked = parts.pop();
    this.awaited += parts.length;
  }

  /** Takes bytes from the edge. */
  came(bytes) {
    let at = 0;
    while (at < bytes.length) at = this.#bodyLeft < 0 ? this.#takeHead(bytes, at) : this.#takeBody(bytes, at);
  }

  #takeHead(bytes, at) {
    const before = this.#head.length;
    this.#head += bytes.toString('latin1', at);
    const end = this.#head.indexOf(HEAD_END);
    if (end === -1) {
      this.begun += bytes.length - at;
      return bytes.length;
    }
    const taken = end + HEAD_END.length - before;
    this.#head = this.#head.slice(0, end + 2);
    this.begun += taken;
    this.#bodyLeft = Number(/\r\ncontent-length: (\d+)\r\n/i.exec(this.#head)?.[1]);
    if (Number.isNaN(this.#bodyLeft)) throw new Error(`a response without a length: ${this.#head}`);
    if (this.#bodyLeft === 0) this.#finish();
    return at + taken;
  }

  #takeBody(bytes, at) {
    const taken = Math.min(this.#bodyLeft, bytes.length - at);
    this.#bodyLeft -= taken;
    this.begun += taken;
    if (this.#bodyLeft === 0) this.#finish();
    return at + taken;
  }

  #finish() {
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(this.#head)?.[1]);
    const error = /\r\nx-tunnel-error: (\S+)\r\n/i.exec(this.#head)?.[1] ?? null;
    this.saidClose = /\r\nconnection: close\r\n/i.test(this.#head);
    this.#head = '';
    this.#bodyLeft = -1;
    this.begun = 0;
    this.awaited -= 1;
    this.#onResponse({ status, error });
  }
}
