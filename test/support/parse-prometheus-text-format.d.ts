declare module 'parse-prometheus-text-format' {
  interface Metric {
    readonly labels?: { readonly [name: string]: string };
    readonly value?: string;
    readonly buckets?: { readonly [bound: string]: string };
    readonly count?: string;
    readonly sum?: string;
  }
  interface Family {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly Metric[];
  }
  /** Throws InvalidLineError. */
  export default function parse(text: string): readonly Family[];
}
