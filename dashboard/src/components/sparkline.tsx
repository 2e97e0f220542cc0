/** A small picture of how a figure went, beside the figure: decoration, the chart below has the numbers. */
import type { ReactElement } from 'react';
import styles from './sparkline.module.css';

interface SparklineProps {
  readonly values: readonly (number | null)[];
}

const width = 120;
const height = 28;

export function Sparkline({ values }: SparklineProps): ReactElement | null {
  const most = Math.max(...values.map((value) => value ?? 0), 0);
  if (values.length < 2 || most === 0) return null;
  const step = width / values.length;
  return (
    <svg
      className={styles.line}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      {values.map((value, i) => {
        const tall = ((value ?? 0) / most) * height;
        return <rect key={i} x={i * step} y={height - tall} width={step * 0.8} height={tall} />;
      })}
    </svg>
  );
}
