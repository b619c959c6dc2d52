// Made from the JSON Schemas of the events by `npm run types`; do not edit.

/**
 * What SAFE reads, and what it publishes for other services.
 */
export type SafeRecord = Result | Report | GenerationOutput | DeadLetterHeaders;
/**
 * Whether a model wrote the output, or its call failed. A failed one never replaces an answered one.
 */
export type Generation = "answered" | "failed";
/**
 * Any score below its review bound fails, else any below its pass bound is to be reviewed.
 */
export type Label = "Fail" | "Pass" | "Review";
/**
 * The rules in force; null where another configuration scored last.
 */
export type Configuration = {
  thresholds: Thresholds;
  weights: Weights;
  /**
   * Any forbidden term makes AH 0.
   */
  strictAH: boolean;
  /**
   * An output with one of these as its summary is a failed generation.
   */
  errorTexts?: string[];
  /**
   * A field of an output with nothing but these was not asked for.
   */
  placeholderTexts?: string[];
  overrides: Overrides;
} | null;
/**
 * What the model wrote; null is an empty output.
 */
export type Output = {
  /**
   * The signals that the model found; empty where absent or null.
   */
  signals?: string[] | null;
  /**
   * The summary of the event; empty where absent or null.
   */
  summary?: string | null;
  /**
   * The questions that the model asks; empty where absent or null.
   */
  followup_questions?: string[] | null;
  /**
   * Why the call of the model failed. If it is there and not blank, the output is a failed generation; false, 0 and what is empty count as blank.
   */
  error_message?: string | null;
  /**
   * The narrative that the model read, word for word: by it SAFE sees whether the output was made from the narrative of its own test case. A text that is not blank goes before `input_digest`; anything else counts as not known.
   */
  raw_input?: string | null;
} | null;

/**
 * Data of `safe:v0:result`: one scored case, and its batch's summary as of that case.
 */
export interface Result {
  /**
   * The concern, as spelled in the event or its test case.
   */
  concern_id: string;
  /**
   * The batch, as the input named it.
   */
  batch_id: string;
  /**
   * When the case was scored.
   */
  timestamp: string;
  summary: Summary;
  /**
   * Test cases that the batch of this name holds; null where that cannot be told.
   */
  expected_cases: number | null;
  /**
   * As many of the batch's test cases have a result as are expected.
   */
  complete: boolean;
  /**
   * The run of a prompt that the output comes from; null where the input names none.
   */
  run_id: string | null;
  /**
   * Whether the output was made from the narrative of this test case; null where that is not known.
   */
  input_matches?: boolean | null;
  generation?: Generation;
  /**
   * The cases of the summary come from more than one run.
   */
  mixed_runs: boolean;
  /**
   * Of the cases of the summary, those that no model has answered.
   */
  failed_generations?: number;
  result: CaseResult;
  source: Source;
  scorer: Scorer;
  /**
   * Of the canonical JSON (RFC 8785) of the three lists of expectations.
   */
  expectations_digest: string;
  /**
   * Of the input record's value.
   */
  output_digest: string;
  lenient?: Lenient;
  coverage?: Coverage;
}
/**
 * The batch as of this event; exactly these fields.
 */
export interface Summary {
  /**
   * Test cases with a result.
   */
  total_cases: number;
  /**
   * Of these, how many are labelled Pass.
   */
  pass: number;
  /**
   * How many are labelled Review.
   */
  review: number;
  /**
   * How many are labelled Fail.
   */
  fail: number;
  /**
   * pass / total_cases.
   */
  overall_pass_rate: number;
}
/**
 * A scored case.
 */
export interface CaseResult {
  /**
   * The test case.
   */
  test_id: string;
  /**
   * The archetype, from the event, the test case or its scenario; null where none names it.
   */
  archetype: string | null;
  scores: Scores;
  details: Details;
  terms: TermCounts;
  label: Label;
}
/**
 * The three criteria and their composite; exactly these fields.
 */
export interface Scores {
  /**
   * Correct recall: the share of required signals found in signals and summary.
   */
  CR: number;
  /**
   * Avoids harm: 1 less the share of forbidden terms used in the follow-up questions.
   */
  AH: number;
  /**
   * All content: the share of required phrases found in the summary.
   */
  AC: number;
  /**
   * The weighted mean of the three.
   */
  composite: number;
}
/**
 * The terms behind the scores, as the expectations' authors wrote them; exactly these fields.
 */
export interface Details {
  CR: FoundTerms;
  AH: Violations;
  AC: FoundTerms;
}
/**
 * The required terms of a criterion; exactly these fields.
 */
export interface FoundTerms {
  /**
   * The terms that were found.
   */
  found: string[];
  /**
   * The terms that were not.
   */
  missing: string[];
}
/**
 * The forbidden terms; exactly these fields.
 */
export interface Violations {
  /**
   * The forbidden terms that were used.
   */
  violations: string[];
}
/**
 * The lengths of the three lists.
 */
export interface TermCounts {
  /**
   * Required signals.
   */
  CR: number;
  /**
   * Forbidden terms.
   */
  AH: number;
  /**
   * Required phrases.
   */
  AC: number;
}
/**
 * The input record that was scored.
 */
export interface Source {
  /**
   * Its topic.
   */
  topic: string;
  /**
   * Its partition.
   */
  partition: number;
  /**
   * Its offset.
   */
  offset: number;
  /**
   * In ms since 1970: by it the latest output of a test case is found. -1 where there is none.
   */
  event_time: number;
  /**
   * The event time that the output states, in ms since 1970, if it is so far ahead of the record's timestamp that this is the event_time instead; else absent.
   */
  stated_event_time?: number;
  /**
   * The id that distinguishes its topic from an earlier one of the same name, if it is part of the ce_id; else absent.
   */
  topic_id?: string;
}
/**
 * Who scored.
 */
export interface Scorer {
  /**
   * The version of the package.
   */
  version: string;
  /**
   * Of everything that can change a score.
   */
  fingerprint: string;
}
/**
 * Lenient recall of the case: the share of required terms that the output has word for word or in other words. Only with SAFE_V0_LENIENT.
 */
export interface Lenient {
  /**
   * Of the required signals, in signals and summary.
   */
  CR: number;
  /**
   * Of the required phrases, in the summary.
   */
  AC: number;
}
/**
 * Coverage of the case: the mean share of each required term that the output has, in whole thousandths. Only with SAFE_V0_LENIENT.
 */
export interface Coverage {
  /**
   * Of the required signals, in signals and summary.
   */
  CR: number;
  /**
   * Of the required phrases, in the summary.
   */
  AC: number;
}
/**
 * Data of `safe:v0:report`: the batch's report as of one moment.
 */
export interface Report {
  /**
   * The kind of report.
   */
  report_type: "SAFE_v0";
  /**
   * When the report was made.
   */
  generated_at: string;
  /**
   * The batch.
   */
  batch_id: string;
  /**
   * The concern.
   */
  concern_id: string;
  /**
   * Test cases with a result.
   */
  total_cases: number;
  summary: Summary;
  mean_scores: MeanScores;
  mean_lenient?: MeanLenient;
  mean_coverage?: MeanCoverage;
  /**
   * How many cases have lenient recall and coverage. Only with SAFE_V0_LENIENT.
   */
  lenient_cases?: number;
  pass_rates: PassRates;
  label_distribution: LabelDistribution;
  /**
   * By archetype; "Unknown" are the cases without one.
   */
  by_archetype: {
    [k: string]: ArchetypeSummary;
  };
  failure_analysis: FailureAnalysis;
  scorer: ReportScorer;
  configuration: Configuration;
  vacuous: Vacuous;
  /**
   * The cases whose output had three fields that were empty or only white space.
   */
  empty_outputs: number;
  /**
   * The cases without any output; of interest in reports on files alone.
   */
  missing_outputs: number;
  /**
   * The cases that no model has answered: every generation for them failed.
   */
  failed_generations?: number;
  /**
   * The cases whose output was made from another narrative than their own.
   */
  input_mismatches?: number;
  /**
   * Test cases that the batch of this name holds; null where that cannot be told.
   */
  expected_cases: number | null;
  /**
   * As many of the batch's test cases have a result as are expected.
   */
  complete: boolean;
  /**
   * The cases scored under each fingerprint.
   */
  fingerprints: {
    [k: string]: number;
  };
  /**
   * The cases of each run of a prompt; "" are those whose input named none.
   */
  runs: {
    [k: string]: number;
  };
  /**
   * What had to be left out of a report that was too large; absent otherwise.
   */
  truncated?: ("by_archetype" | "common_terms" | "runs" | "worst_performers.details")[];
}
/**
 * The means over all cases; exactly these fields.
 */
export interface MeanScores {
  /**
   * Correct recall: the share of required signals found in signals and summary.
   */
  CR: number;
  /**
   * Avoids harm: 1 less the share of forbidden terms used in the follow-up questions.
   */
  AH: number;
  /**
   * All content: the share of required phrases found in the summary.
   */
  AC: number;
  /**
   * The weighted mean of the three.
   */
  composite: number;
}
/**
 * Mean lenient recall over the cases that have it. Only with SAFE_V0_LENIENT.
 */
export interface MeanLenient {
  /**
   * Of the required signals, in signals and summary.
   */
  CR: number;
  /**
   * Of the required phrases, in the summary.
   */
  AC: number;
}
/**
 * Mean coverage over the cases that have it. Only with SAFE_V0_LENIENT.
 */
export interface MeanCoverage {
  /**
   * Of the required signals, in signals and summary.
   */
  CR: number;
  /**
   * Of the required phrases, in the summary.
   */
  AC: number;
}
/**
 * The share of cases that passed each criterion by their own thresholds, and overall.
 */
export interface PassRates {
  /**
   * Correct recall.
   */
  CR: number;
  /**
   * Avoids harm.
   */
  AH: number;
  /**
   * All content.
   */
  AC: number;
  /**
   * The share labelled Pass.
   */
  overall: number;
}
/**
 * The cases of each label.
 */
export interface LabelDistribution {
  /**
   * All three criteria passed.
   */
  Pass: number;
  /**
   * To be looked at.
   */
  Review: number;
  /**
   * Some criterion failed.
   */
  Fail: number;
}
/**
 * The cases of one archetype.
 */
export interface ArchetypeSummary {
  /**
   * Cases.
   */
  count: number;
  /**
   * Mean CR.
   */
  mean_CR: number;
  /**
   * Mean AH.
   */
  mean_AH: number;
  /**
   * Mean AC.
   */
  mean_AC: number;
  /**
   * The share labelled Pass.
   */
  pass_rate: number;
}
/**
 * What went wrong most; five of each at most.
 */
export interface FailureAnalysis {
  /**
   * The cases of the lowest composites; of equal ones the first by test_id.
   *
   * @maxItems 5
   */
  worst_performers: CaseResult[];
  /**
   * The required signals missed most often.
   *
   * @maxItems 5
   */
  common_CR_misses: MissedSignal[];
  /**
   * The forbidden terms used most often.
   *
   * @maxItems 5
   */
  common_AH_violations: UsedTerm[];
  /**
   * The required phrases missed most often.
   *
   * @maxItems 5
   */
  common_AC_misses: MissedPhrase[];
}
/**
 * A required signal and how often it was missed.
 */
export interface MissedSignal {
  /**
   * The signal.
   */
  signal: string;
  /**
   * How often it was missed.
   */
  miss_count: number;
}
/**
 * A forbidden term and how often it was used.
 */
export interface UsedTerm {
  /**
   * The term.
   */
  term: string;
  /**
   * How often it was used.
   */
  count: number;
}
/**
 * A required phrase and how often it was missed.
 */
export interface MissedPhrase {
  /**
   * The phrase.
   */
  phrase: string;
  /**
   * How often it was missed.
   */
  miss_count: number;
}
/**
 * Who scored, and by which rule.
 */
export interface ReportScorer {
  /**
   * The version of the package that scored last.
   */
  version: string;
  /**
   * Of everything that can change a score.
   */
  fingerprint: string;
  /**
   * What counts as found.
   */
  rule: "substring/1";
}
/**
 * The bounds of the labels.
 */
export interface Thresholds {
  CR: Threshold;
  AH: Threshold;
  AC: Threshold;
}
/**
 * The bounds of one criterion.
 */
export interface Threshold {
  /**
   * The lowest score that passes.
   */
  pass: number;
  /**
   * The lowest that is to be reviewed.
   */
  review: number;
}
/**
 * The weights of the criteria in the composite.
 */
export interface Weights {
  /**
   * Correct recall.
   */
  CR: number;
  /**
   * Avoids harm.
   */
  AH: number;
  /**
   * All content.
   */
  AC: number;
}
/**
 * What differs for some cases.
 */
export interface Overrides {
  /**
   * By metric_id.
   */
  metric_id: {
    [k: string]: Override;
  };
  /**
   * By archetype; "Unknown" serves the cases without.
   */
  archetype: {
    [k: string]: Override;
  };
}
/**
 * What differs for these cases.
 */
export interface Override {
  thresholds?: ThresholdChanges;
  weights?: WeightChanges;
  /**
   * Any forbidden term makes AH 0.
   */
  strictAH?: boolean;
}
/**
 * The thresholds that differ.
 */
export interface ThresholdChanges {
  CR?: ThresholdChange;
  AH?: ThresholdChange;
  AC?: ThresholdChange;
}
/**
 * The bounds of one criterion that differ.
 */
export interface ThresholdChange {
  /**
   * The lowest score that passes.
   */
  pass?: number;
  /**
   * The lowest that is to be reviewed.
   */
  review?: number;
}
/**
 * The weights that differ.
 */
export interface WeightChanges {
  /**
   * Correct recall.
   */
  CR?: number;
  /**
   * Avoids harm.
   */
  AH?: number;
  /**
   * All content.
   */
  AC?: number;
}
/**
 * The cases whose criterion was 1.0 with nothing to check.
 */
export interface Vacuous {
  /**
   * Correct recall.
   */
  CR: number;
  /**
   * Avoids harm.
   */
  AH: number;
  /**
   * All content.
   */
  AC: number;
  /**
   * All three.
   */
  all: number;
}
/**
 * An output to score. Unknown fields are ignored, at any depth; a key may stand only once.
 */
export interface GenerationOutput {
  /**
   * The test case that was answered.
   */
  test_id: string;
  /**
   * The batch; its test case of that id is looked for first.
   */
  batch_id: string;
  /**
   * The concern; else the test case's. One of them must name it.
   */
  concern_id?: string | null;
  /**
   * The archetype; else, and where it is "Unknown", the test case's.
   */
  archetype?: string | null;
  /**
   * Whose overrides apply; else the test case's, else the concern.
   */
  metric_id?: string | null;
  /**
   * Which run of a prompt over the batch the output comes from.
   */
  run_id?: string | null;
  /**
   * The digest of the narrative that the model read, where `output.raw_input` does not hold it: `sha256:` and the hash of its UTF-8, split at white space and joined by one space. A text that is not blank must be such a digest; anything else counts as not known.
   */
  input_digest?: string | null;
  /**
   * When it was generated, with a zone: the latest output of a test case counts. Else the record's.
   */
  generated_at?: string | null;
  output: Output;
}
/**
 * What SAFE adds to the headers of an input, which are kept. UTF-8 text, numbers in decimal.
 */
export interface DeadLetterHeaders {
  /**
   * Why it can never be scored; a closed list.
   */
  "safe.dlq.reason":
    | "empty_value"
    | "not_utf8"
    | "invalid_json"
    | "not_object"
    | "too_deep"
    | "too_large"
    | "duplicate_key"
    | "invalid_event"
    | "invalid_id"
    | "invalid_number"
    | "unsupported_version"
    | "expectations_not_found"
    | "expectations_ambiguous"
    | "expectations_invalid"
    | "scorer_error"
    | "result_too_large";
  /**
   * Which stage refused it.
   */
  "safe.dlq.stage": "scorer" | "aggregator";
  /**
   * The reason in words, which never repeat the input.
   */
  "safe.dlq.detail": string;
  /**
   * The topic that it was read from.
   */
  "safe.dlq.topic": string;
  /**
   * Its partition there.
   */
  "safe.dlq.partition": string;
  /**
   * Its offset there.
   */
  "safe.dlq.offset": string;
  /**
   * Its timestamp there, in ms since 1970; -1 where it had none.
   */
  "safe.dlq.timestamp": string;
  /**
   * The group id of the SAFE that refused it.
   */
  "safe.dlq.group": string;
  /**
   * The version of that SAFE.
   */
  "safe.dlq.version": string;
  /**
   * When it was refused.
   */
  "safe.dlq.failed_at": string;
  /**
   * The value was too large even here.
   */
  "safe.dlq.value_omitted"?: "true";
  /**
   * How many bytes the value had.
   */
  "safe.dlq.value_bytes"?: string;
  /**
   * The value's SHA-256.
   */
  "safe.dlq.value_sha256"?: string;
}
