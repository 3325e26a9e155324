// Names for tunnels that ask for none: two words a person can say, and enough chance that nobody finds one by trying.

const ADJECTIVES =
  'amber bold brave brisk calm clear clever cool cosy crisp dapper eager early easy fair fancy fine fleet fond free fresh gentle glad gold grand green happy hardy honest keen kind light lively loyal lucky mellow merry mild neat nimble noble open plain polite proud quick quiet rapid rare ready rosy royal sharp shiny silent silver smart smooth snug soft solid spry steady still sunny super sure sweet swift tidy tiny true vast warm wise witty young zesty'.split(
    ' ',
  );
const NOUNS =
  'acorn anchor apple arrow badger beach bear birch bird bridge brook cedar cliff cloud clover comet coral crane creek daisy dawn deer dune eagle elm falcon fern field finch fjord forest fox garden gecko glade grove harbor hawk hazel heron hill island ivy jasper kestrel koala lagoon lake lark leaf lemon lily lynx maple marsh meadow moon moss mountain oak ocean olive orca otter owl panda pearl pebble pine planet plum pond poppy quail rain raven reef river robin rose sail sand seal sky sparrow spring star stone storm stream summit sun swan thistle tiger trail tree tulip valley violet wave willow wind wolf wren'.split(
    ' ',
  );

/** No vowels: no words by accident. No look-alikes. */
const SUFFIX_CHARACTERS = 'bcdfghjkmnpqrstvwxz23456789';
const SUFFIX_LENGTH = 6;

/** `random` in [0, 1). About 41 bits: 2^28 of the suffix and 2^13 of the words. */
export const generateName = (random: () => number): string => {
  const pick = (from: string | readonly string[]): string => from[Math.floor(random() * from.length)] as string;
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () => pick(SUFFIX_CHARACTERS)).join('');
  return `${pick(ADJECTIVES)}-${pick(NOUNS)}-${suffix}`;
};
