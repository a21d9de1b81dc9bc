"""Display names that only this paper uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class MustLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "must"
    quantities: ClassVar = {
        "delta_prime": "δ′",
        "delta_x": "grid step",
        "order_of_bias_mu": "order of magnitude",
        "order_of_bias_tau2": "order of magnitude",
        "pct_inside_bounds_lower_limit": "more than this share inside, %",
        "beta0": "β₀",
        "beta1": "β₁",
        "beta2": "β₂",
        "sigma_mean": "σ of the mean",
        "sigma_variance": "σ of the variance",
        "sigma_times_m": "σ m",
        "delta_c_lower": "δ, lower",
        "delta_c_upper": "δ, upper",
        "delta_c_pair": "δ of the paper's pair, no guarantee",
        "noise_refuted": "refuted by attack",
        "noise_pair": "the paper's pair, no guarantee",
        "noise_over_wor": "proved noise over that of WOR",
        "law_mean": "exact expectation",
        "delta_threshold": "threshold of δ",
        "pct_efficiency_increase": "increase in efficiency, %",
        "iterations_k": "steps",
        "parameters_p": "parameters",
        "pct_time_increase_vs_WOR": "time increase over WOR, %",
        "one_over_n": "1/n",
        "max_sigma_ratio_Poisson_over_MUST.OW": "largest σ of Poisson over that of MUST.OW",
        "gradients_computed": "gradients",
        "training_rows": "training records",
        "test_rows": "test records",
        "rmse_mean": "RMSE, mean",
        "rmse_sd": "RMSE, SD",
        "rmse": "RMSE",
        "ppv": "PPV",
        "npv": "NPV",
        "f1": "F1",
        "time_increase_percent": "time increase, %",
    }
    words: ClassVar = {
        "sparse": "sparse draw",
        "scikit_learn": "scikit-learn",
        "converged": "solver run to convergence",
        "sd_over_seeds": "standard deviation over seeds",
        "delta_of_the_consistent_noise": "composed privacy of the consistent noise",
        "epsilon_of_the_consistent_noise": "composed privacy of the consistent noise, both sides",
        "delta_at_the_printed_scale": "composed privacy at the scale that the printed bounds use",
        "delta_with_a_fixed_denominator": "composed privacy with Poisson sums divided by the "
        "fixed m",
        "s8_threshold_laplace_WR": "Section S8, Laplace, WR",
        "s8_threshold_laplace_MUST.OW": "Section S8, Laplace, MUST.OW",
        "s8_threshold_laplace_MUST.WW": "Section S8, Laplace, MUST.WW",
        "s8_threshold_gaussian_WR": "Section S8, Gaussian, WR",
        "s8_threshold_gaussian_MUST.OW": "Section S8, Gaussian, MUST.OW",
        "s8_threshold_gaussian_MUST.WW": "Section S8, Gaussian, MUST.WW",
        "efficiency_ww": "MUST.WW compared with WOR",
        "sgd_k": "experiment 3, Section 4.3",
        "sgd_p": "experiment 3",
        "poisson_time_exp2": "Poisson, experiment 2",
        "poisson_time_exp3": "Poisson, experiment 3",
        "adult_features": "Adult, columns",
        "adult_train": "Adult, training part",
        "adult_test": "Adult, test part",
        "adult_T": "experiment 3",
        "adult_inv_n": "Adult",
        "exp1_sigma_ratio": "experiment 1",
        "sec31_ow_distinct": "MUST.OW(100, 10, 20)",
        "paper_pair": "the paper's pair",
        "s8_crossover_laplace_delta": "Section S8, Laplace, crossover",
        "s8_crossover_laplace_delta_prime": "Section S8, Laplace, crossover",
        "s8_crossover_gaussian_delta": "Section S8, Gaussian, crossover",
        "s8_crossover_gaussian_delta_prime": "Section S8, Gaussian, crossover",
        "fa_r_WR": "Section 4.2.3, WR",
        "fa_r_other": "Section 4.2.3, all other schemes",
        "exp1_cover": "Section 4.2.1, bounds of the data",
        "exp1_bias_mu": "Section 4.2.1, bias of the mean",
        "exp1_bias_tau2": "Section 4.2.1, bias of the variance",
        **dict.fromkeys(
            ("s2_n", "s2_m", "s2_b", "s2_sigma", "s2_L", "s2_r", "s2_dx", "s2_eps"), "Figure S2"
        ),
        **{f"s2_k{k}": "Figure S2" for k in range(200, 1200, 200)},
        **dict.fromkeys(("fig4_n", "fig4_m", "fig4_b", "fig4_eps_max"), "Figure 4"),
        **dict.fromkeys(("fig5_m_lo", "fig5_m_hi", "fig5_b_lo", "fig5_b_hi"), "Figures 5 and S1"),
    }
