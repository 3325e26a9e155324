// The course of a few numbers in the space of a word.

const WIDTH = 100;
const HEIGHT = 24;

export interface SparklineProps {
  readonly values: readonly number[];
  /** What it shows, in words: "Requests of the last 30 days". */
  readonly label: string;
  readonly className?: string;
}

export const Sparkline = ({ values, label, className = 'h-6 w-24' }: SparklineProps) => {
  const top = Math.max(1, ...values);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${yOf(value, top).toFixed(1)}`).join(' ');
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      className={`${className} text-accent`}
    >
      <polyline points={points} fill="none" stroke="currentColor" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
    </svg>
  );
};

const yOf = (value: number, top: number): number => HEIGHT - 1 - (value / top) * (HEIGHT - 2);
