// Bounds of certificates that come to an edge by themselves, and of what authorities ask it: EDGE_LIMITS has them.

const KiB = 1024;

export const CERTIFICATE_LIMITS = {
  // --- certificates that come by themselves ---
  /** certificates that an edge knows; a snapshot with more is not taken */
  CERTIFICATES_MAX: 100_000,
  /** one line of the snapshot: a chain and its key */
  CERTIFICATE_LINE_MAX_BYTES: 256 * KiB,
  /** for the whole snapshot of certificates; 10,000 take some seconds */
  CERTIFICATES_SNAPSHOT_MS: 120_000,
  /** how long certificates are read in one turn of the event loop: to try a pair takes some tenths of a millisecond */
  CERTIFICATES_TURN_MS: 5,
  /** changed certificates that are asked for at once */
  CERTIFICATE_FETCHES_AT_ONCE: 4,
  /** changed certificates that wait to be asked for; with more the whole snapshot is taken instead */
  CERTIFICATE_FETCHES_MAX: 1000,
  /** the pause after one that was not answered */
  CERTIFICATE_FETCH_AGAIN_MS: 2000,
  /** a larger file is none of ours */
  CERTIFICATE_COPY_MAX_BYTES: 512 * KiB,
  /** the pause after one that could not be written: a disk that is full stays so for a while */
  CERTIFICATE_COPIES_AGAIN_MS: 60_000,
  /** what copies that wait for the disk may take when the edge stops; the others are told again by the platform */
  CERTIFICATE_COPIES_STOP_MS: 3000,

  /** how often an edge without a platform looks which certificates it wants */
  CERTIFICATES_LOOK_MS: 60_000,

  // --- challenges of certificate authorities ---
  /** whether a challenge is ours must be known by then; else it is not */
  CHALLENGE_QUESTION_MS: 2000,
  /** questions about challenges that the platform is asked in a second, of names with no order under way; over that none is ours */
  CHALLENGE_QUESTIONS_PER_SECOND: 5,
  /** the same of names on order, which those of all others do not use up: a few orders are under way at once */
  CHALLENGE_ORDER_QUESTIONS_PER_SECOND: 20,
  /** between two questions about one name on order: whoever comes meanwhile waits for the second */
  CHALLENGE_ORDER_PAUSE_MS: 500,
  /** how long an answer is used again: an authority looks from several networks */
  CHALLENGE_ANSWER_KEPT_MS: 60_000,
  /** how long nobody asks again for a name without a challenge: it may get one */
  CHALLENGE_NONE_KEPT_MS: 1000,
  /** answers that are kept; the oldest is forgotten */
  CHALLENGE_ANSWERS_MAX: 1000,
  /** certificates of challenges that are ready for handshakes; the oldest is forgotten */
  CHALLENGE_CONTEXTS_MAX: 100,
} as const;
